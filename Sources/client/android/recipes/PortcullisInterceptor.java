// The client in an OkHttp client: copy this file into the app. In Java it fits OkHttp 3.12, 4 and 5 alike.
//
//     val http = OkHttpClient.Builder().addInterceptor(PortcullisInterceptor(client)).build()
//
// Add it as the last of the application's interceptors, so that none changes a request after it was signed, and not as
// a network interceptor, which may send a request only once. OkHttp writes `Cookie`, `Accept-Encoding` and `User-Agent`
// later: where a rule signs one of these, the request has to have it.
package portcullis.recipes;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import okhttp3.Headers;
import okhttp3.Interceptor;
import okhttp3.MediaType;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import okio.Buffer;
import okio.BufferedSink;
import portcullis.client.Outcome;
import portcullis.client.PortcullisClient;
import portcullis.client.PortcullisContent;
import portcullis.client.PortcullisField;
import portcullis.client.PortcullisRequest;
import portcullis.client.PortcullisResponse;
import portcullis.client.SignedRequest;
import portcullis.client.Step;

/** Signs each request, and signs it again where a refusal asks for that. Requests to other servers pass untouched. */
public final class PortcullisInterceptor implements Interceptor {
    /** The origin may have run the request although it was refused: ask the server, or tell the user. */
    public static final class MayHaveRunException extends IOException {
        MayHaveRunException() { super("the request may have run"); }
    }

    /** The app has to get a token of one of these issuers, and to send the request with it. */
    public static final class GetTokenException extends IOException {
        public final List<String> tokens;

        GetTokenException(List<String> tokens) {
            super("the request needs a token of: " + String.join(" ", tokens));
            this.tokens = tokens;
        }
    }

    /** A longer body is sent by PortcullisClient itself, from a file. */
    private static final long BODY_MAX = 64L << 20;

    private final PortcullisClient client;

    public PortcullisInterceptor(PortcullisClient client) { this.client = client; }

    @Override
    public Response intercept(Chain chain) throws IOException {
        Request request = chain.request();
        SignedRequest signed = client.sign(described(request));
        while (true) {
            Response response = chain.proceed(written(signed, request));
            // One out of OkHttp's cache says nothing new.
            boolean isCached = response.networkResponse() == null;
            PortcullisResponse head = new PortcullisResponse(response.code(), fields(response.headers()), isCached);
            Step step = client.signAgain(signed, head);
            if (step instanceof Step.Final) return finished(((Step.Final) step).outcome, response);
            response.close();
            signed = ((Step.Again) step).request;
        }
    }

    private static Response finished(Outcome outcome, Response response) throws IOException {
        if (outcome instanceof Outcome.MayHaveRun) {
            response.close();
            throw new MayHaveRunException();
        }
        if (outcome instanceof Outcome.GetToken) {
            response.close();
            throw new GetTokenException(((Outcome.GetToken) outcome).tokens);
        }
        return response;
    }

    private static PortcullisRequest described(Request request) throws IOException {
        PortcullisRequest.Builder builder =
            new PortcullisRequest.Builder(request.method(), request.url().toString());
        for (PortcullisField field : fields(request.headers())) builder.field(field.name, field.value);
        RequestBody body = request.body();
        if (body == null) return builder.build();
        MediaType type = body.contentType();
        // OkHttp would write it later, and a rule may sign it.
        if (type != null && request.header("Content-Type") == null) builder.field("Content-Type", type.toString());
        if (body.contentLength() > BODY_MAX) throw new IOException("the body is too long to be held");
        Buffer held = new Buffer();
        body.writeTo(held);
        return builder.content(held.readByteArray()).build();
    }

    private static Request written(SignedRequest signed, Request request) {
        Headers.Builder headers = new Headers.Builder();
        for (PortcullisField field : signed.fields) headers.add(field.name, field.value);
        RequestBody body = request.body() == null ? null : new SentBody(signed.content, request.body().contentType());
        return request.newBuilder().headers(headers.build()).method(signed.method, body).build();
    }

    private static List<PortcullisField> fields(Headers headers) {
        List<PortcullisField> fields = new ArrayList<>();
        for (int place = 0; place < headers.size(); place++) {
            fields.add(new PortcullisField(headers.name(place), headers.value(place)));
        }
        return fields;
    }

    /** The content that was signed. */
    private static final class SentBody extends RequestBody {
        private final PortcullisContent content;
        private final MediaType type;

        SentBody(PortcullisContent content, MediaType type) {
            this.content = content;
            this.type = type;
        }

        @Override public MediaType contentType() { return type; }

        @Override public long contentLength() { return content.getLength(); }

        @Override
        public void writeTo(BufferedSink sink) throws IOException {
            try (InputStream source = content.open()) {
                byte[] piece = new byte[16 << 10];
                int count;
                while ((count = source.read(piece)) >= 0) sink.write(piece, 0, count);
            }
        }
    }
}
