/// What operators see of all this.
struct CountedVerdicts: Step {
    let title = "It is all counted"

    func play(on stage: Stage) throws(DemoError) {
        let page = try Call.metrics.send(to: stage.adminPort).text
        let lines = page.split(separator: "\n").filter {
            $0.hasPrefix("portcullis_verdicts_total{")
        }
        stage.narrator.say(
            "   $ curl http://127.0.0.1:\(stage.adminPort)/metrics | grep verdicts_total"
        )
        for line in lines where line.contains("\"place-order\"") || line.contains("\"checkout\"") {
            stage.narrator.say("   \(line)")
        }
        func count(_ labels: String...) -> Int? {
            lines.first { line in labels.allSatisfy { line.contains("\"\($0)\"") } }
                .flatMap { $0.split(separator: " ").last }.flatMap { Int($0) }
        }
        stage.narrator.claim(
            "one replay and one spent challenge, as told above",
            count("place-order", "counter-replayed") == 1
                && count("place-order", "challenge-spent") == 1
        )
        stage.narrator.claim(
            "\(stage.quarterRefusals) requests refused by the rule of a quarter, as counted here",
            count("checkout", "counter-replayed", "true") == stage.quarterRefusals
        )
        stage.narrator.claim(
            "no request reached the origin but those told above",
            stage.origin.untoldCount == 0
        )
    }
}
