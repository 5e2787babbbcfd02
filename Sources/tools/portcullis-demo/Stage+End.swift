import AppleStandIn
import Gateway
import Glibc

// How a run ends.
extension Stage {
    /// Ends the gateway, waits for it, and removes the folder.
    func end() throws(DemoError) {
        narrator.begin("An orderly end")
        let status = ending.await { gateway.stop() }
        apple.stop()
        narrator.claim("the gateway drained, closed its store and ended well", status == 0)
        tellLog()
        if let path = folder.remove() { narrator.say("   left: \(path)") }
    }

    private func tellLog() {
        let log = folder.text("access.log")
        guard let line = log.split(separator: "\n").first(where: { $0.contains("\"pass\"") }) else {
            return
        }
        narrator.say("   a line of the access log:\n     \(line)")
        let cutShort = log.split(separator: "\n").filter { $0.contains(#""content":"cut-short""#) }
        narrator.claim(
            "one line says that content was cut short: that of the damaged upload",
            cutShort.count == 1 && cutShort[0].contains("upload-photo")
        )
        let secrets = admitted.fields.filter { $0.name.hasPrefix("App-Attest-") }.map(\.value)
        narrator.claim(
            "no line holds a key id, a challenge or an assertion",
            !secrets.isEmpty && !secrets.contains { log.contains($0) }
        )
    }

    /// Serves until the process gets a signal.
    func serveOn() throws(DemoError) {
        let challenge = try phone.challenge("assertion")
        let call = phone.signed(
            Call("POST", "/v1/orders", content: Array(#"{"item":"lamp"}"#.utf8)),
            challenge
        )
        let fields = call.fields.map { " \\\n     -H '\($0.name): \($0.value)'" }.joined()
        let base = "http://127.0.0.1:\(port)"
        print(
            """

            Serving. Things to try from another terminal; Control-C ends.

               curl -i -d '{"item":"lamp"}' \(base)/v1/orders
               curl -i -X POST \(base)\(Phone.endpoints)/challenges
               curl http://127.0.0.1:\(adminPort)/status
               curl http://127.0.0.1:\(adminPort)/metrics
               portcullis check \(folder.file("portcullis.yaml"))
               portcullis keys list --config \(folder.file("portcullis.yaml"))

            Good once, within five minutes:

               curl -i -d '{"item":"lamp"}'\(fields) \\
                 \(base)/v1/orders
            """
        )
        fflush(nil)
        ending.awaitSignal()
    }
}
