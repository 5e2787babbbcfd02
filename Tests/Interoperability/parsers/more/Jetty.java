import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.util.StringJoiner;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.proxy.ProxyServlet;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.AbstractHandler;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Jetty, without its web applications.
 *
 * usage: Jetty echo PORT LOG    writes what Jetty parsed to the log, as backends.py does
 *        Jetty proxy PORT NEXT  Jetty's transparent proxy of 127.0.0.1:NEXT
 */
public final class Jetty {
    public static void main(String[] words) throws Exception {
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server, 1, 1);
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(words[1]));
        connector.setIdleTimeout(5000);
        server.setConnectors(new Connector[] {connector});
        if (words[0].equals("echo")) {
            server.setHandler(new Echo(Path.of(words[2])));
        } else {
            ServletHolder proxy = new ServletHolder(new ProxyServlet.Transparent());
            proxy.setInitParameter("proxyTo", "http://127.0.0.1:" + words[2]);
            proxy.setInitParameter("preserveHost", "true");
            proxy.setInitParameter("timeout", "5000");
            ServletContextHandler context = new ServletContextHandler();
            context.setContextPath("/");
            context.addServlet(proxy, "/*");
            server.setHandler(context);
        }
        server.start();
        server.join();
    }

    static final class Echo extends AbstractHandler {
        private final Path log;

        Echo(Path log) {
            this.log = log;
        }

        @Override
        public void handle(String path, Request base, HttpServletRequest request, HttpServletResponse response)
                throws IOException {
            // A request that Jetty has refused comes here once more, as an error.
            if (request.getDispatcherType() != javax.servlet.DispatcherType.REQUEST) {
                base.setHandled(true);
                return;
            }
            byte[] body = content(request.getInputStream());
            StringJoiner fields = new StringJoiner(",", "[", "]");
            for (HttpField field : base.getHttpFields()) {
                String value = field.getValue() == null ? "" : field.getValue();
                fields.add("[" + json(field.getName()) + "," + json(value) + "]");
            }
            // As it came. HttpURI.toString() puts the host before the path, and getRequestURI() has no query.
            String target = base.getHttpURI().getPathQuery();
            String line = "{\"method\":" + json(request.getMethod()) + ",\"target\":" + json(target)
                + ",\"fields\":" + fields + ",\"length\":" + body.length + ",\"sha256\":\"" + digest(body)
                + "\",\"how\":\"raw\"}\n";
            byte[] bytes = line.getBytes(StandardCharsets.US_ASCII);
            synchronized (this) {
                Files.write(log, bytes, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            }
            base.setHandled(true);
            response.setContentLength(bytes.length);
            response.getOutputStream().write(bytes);
        }

        private static byte[] content(InputStream input) throws IOException {
            ByteArrayOutputStream whole = new ByteArrayOutputStream();
            input.transferTo(whole);
            return whole.toByteArray();
        }

        private static String digest(byte[] bytes) {
            try {
                StringBuilder text = new StringBuilder();
                for (byte one : MessageDigest.getInstance("SHA-256").digest(bytes)) {
                    text.append(String.format("%02x", one));
                }
                return text.toString();
            } catch (java.security.NoSuchAlgorithmException missing) {
                throw new IllegalStateException(missing);
            }
        }

        private static String json(String text) {
            StringBuilder quoted = new StringBuilder("\"");
            for (char one : text.toCharArray()) {
                if (one == '"' || one == '\\' || one < 0x20 || one > 0x7e) {
                    quoted.append(String.format("\\u%04x", (int) one));
                } else {
                    quoted.append(one);
                }
            }
            return quoted.append('"').toString();
        }
    }
}
