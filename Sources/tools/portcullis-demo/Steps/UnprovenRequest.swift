/// Somebody without the app, with curl for example.
struct UnprovenRequest: Step {
    let title = "A request without proof is refused"

    func play(on stage: Stage) throws(DemoError) {
        let call = Call("POST", "/v1/orders", content: Array(#"{"item":"lamp"}"#.utf8))
        let answer = try stage.exchange(call)
        stage.narrator.claim(
            "refused with 401 assertion-missing",
            answer.status == 401 && answer.problem("reason") == "assertion-missing"
        )
        let field = answer["WWW-Authenticate"] ?? ""
        stage.narrator.claim(
            "the answer says what to do next and brings the challenge to do it with",
            answer.problem("next") == "sign-again" && answer.challenge != nil
                && field.hasPrefix("AppAttest ")
        )
        stage.claimOriginSawNothing()
    }
}
