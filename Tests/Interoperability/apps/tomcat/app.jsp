<%@ page contentType="application/json" import="java.io.*,java.util.*,java.nio.charset.*,java.nio.file.*,java.security.*" trimDirectiveWhitespaces="true" session="false" isErrorPage="true" %><%!
    // A servlet: its route is what the container made of the path (getServletPath, getPathInfo).
    static String quote(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\' || c < 32 || c > 126) out.append(String.format("\\u%04x", (int) c));
            else out.append(c);
        }
        return out.append('"').toString();
    }

    static String lists(Map<String, String[]> values) {
        StringJoiner out = new StringJoiner(",", "{", "}");
        values.forEach((name, list) -> {
            StringJoiner texts = new StringJoiner(",", "[", "]");
            for (String text : list) texts.add(quote(text));
            out.add(quote(name) + ":" + texts);
        });
        return out.toString();
    }

    static Map<String, String[]> parse(String text) {
        Map<String, String[]> found = new LinkedHashMap<>();
        for (String pair : text.split("&")) {
            int sign = pair.indexOf('=');
            if (sign > 0) {
                found.put(pair.substring(0, sign), new String[] {pair.substring(sign + 1)});
            }
        }
        return found;
    }

    static synchronized void write(String line) throws IOException {
        Files.write(Paths.get(System.getenv("INTEROP_LOG")), (line + "\n").getBytes("ISO-8859-1"),
            StandardOpenOption.APPEND);
    }
%><%
    String method = request.getMethod();
    String path = request.getServletPath() + (request.getPathInfo() == null ? "" : request.getPathInfo());
    Map<String, String> routes = Map.of("/pay", "POST pay", "/upload", "POST upload", "/profile",
        "GET profile", "/item", "DELETE item", "/v1/orders", "* orders", "/hosted", "POST hosted",
        "/checkin", "POST checkin", "/told", "POST told", "/open", "* open", "/", "* root");
    String[] route = routes.getOrDefault(path, "* none").split(" ");
    // As HttpServlet has it, HEAD runs what GET runs.
    boolean taken = route[0].equals("*") || route[0].equals(method)
        || route[0].equals("GET") && method.equals("HEAD");
    String handler = taken ? route[1] : "none";
    if (path.equals("/trial") && method.equals("POST")) handler = "trial";
    if (path.startsWith("/files/")) handler = path.startsWith("/files/private/") ? "private" : "files";
    String query = lists(parse(request.getQueryString() == null ? "" : request.getQueryString()));
    String seen = "\"handler\":" + quote(handler) + ",\"method\":" + quote(method) + ",\"path\":"
        + quote(path) + ",\"query\":" + query;
    write("{\"stage\":\"entered\"," + seen + "}");
    byte[] content = new byte[0];
    if (Set.of("POST", "PUT", "PATCH").contains(method)) content = request.getInputStream().readAllBytes();
    StringBuilder hash = new StringBuilder();
    for (byte b : MessageDigest.getInstance("SHA-256").digest(content)) hash.append(String.format("%02x", b));
    StringJoiner fields = new StringJoiner(",", "{", "}");
    for (String name : Collections.list(request.getHeaderNames())) {
        fields.add(quote(name.toLowerCase()) + ":" + quote(request.getHeader(name)));
    }
    String text = new String(content, StandardCharsets.ISO_8859_1);
    write("{\"stage\":\"executed\"," + seen + ",\"form\":" + lists(parse(text)) + ",\"fields\":" + fields
        + ",\"length\":" + content.length + ",\"sha256\":" + quote(hash.toString()) + ",\"content\":"
        + quote(text.substring(0, Math.min(512, text.length()))) + "}");
    if (handler.equals("none")) response.setStatus(404);
%>{"handler":<%= quote(handler) %>,"query":<%= query %>}
