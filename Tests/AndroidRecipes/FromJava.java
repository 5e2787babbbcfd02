// The client as an app in Java uses it.
package portcullis.test;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import portcullis.client.Absence;
import portcullis.client.Outcome;
import portcullis.client.PortcullisClient;
import portcullis.client.PortcullisConfiguration;
import portcullis.client.PortcullisContent;
import portcullis.client.PortcullisLimits;
import portcullis.client.PortcullisRequest;
import portcullis.client.PortcullisResponse;
import portcullis.client.Proof;
import portcullis.client.Refusal;
import portcullis.client.SignedRequest;
import portcullis.client.SigningRequirement;
import portcullis.client.Step;
import portcullis.client.android.AndroidKeys;

final class FromJava {
    private FromJava() {}

    private static final class Text extends PortcullisContent {
        private final byte[] bytes = "lamp".getBytes(StandardCharsets.UTF_8);

        @Override public long getLength() { return bytes.length; }

        @Override public InputStream open() { return new ByteArrayInputStream(bytes); }
    }

    static String send(String gateway, String packageName, File record) throws IOException {
        PortcullisLimits limits = new PortcullisLimits();
        limits.proofWait = 20_000;
        PortcullisConfiguration configuration =
            new PortcullisConfiguration.Builder(gateway, packageName, record, new AndroidKeys())
                .limits(limits)
                .defaultRequirement(new SigningRequirement().signingFields("idempotency-key"))
                .log(words -> { })
                .build();
        PortcullisClient client = new PortcullisClient(configuration);
        Absence absence = client.prewarm();
        Outcome outcome = client.send(
            new PortcullisRequest.Builder("POST", "/v1/orders").field("Idempotency-Key", "8e03978e")
                .content(new Text()).timeout(20_000).build());
        String sent = described(outcome);
        SignedRequest signed = client.sign(new PortcullisRequest("GET", "/v1/orders"));
        Step step = client.signAgain(
            signed, PortcullisResponse.of(200, Collections.singletonMap("Server", Collections.singletonList("x"))));
        boolean isFinal = step instanceof Step.Final && signed.proof instanceof Proof.Assertion;
        client.signOut();
        boolean isForgotten = client.reset();
        client.close();
        return (absence == null ? "ready" : absence.word) + ", " + sent + ", " + isFinal + ", " + isForgotten;
    }

    private static String described(Outcome outcome) throws IOException {
        if (outcome instanceof Outcome.Answered) {
            Outcome.Answered answered = (Outcome.Answered) outcome;
            Refusal refusal = answered.answer.refusal;
            return answered.answer.status + " " + (refusal == null ? answered.answer.text() : refusal.reason);
        }
        if (outcome instanceof Outcome.Failed) return ((Outcome.Failed) outcome).error.getMessage();
        return outcome.getClass().getSimpleName();
    }
}
