/// Somebody has recorded the request.
struct ReplayedRequest: Step {
    let title = "A replay is refused"

    func play(on stage: Stage) throws(DemoError) {
        stage.narrator.say("   the same bytes once more:")
        let replay = try stage.exchange(stage.admitted)
        stage.narrator.claim(
            "refused with 401 counter-replayed",
            replay.status == 401 && replay.problem("reason") == "counter-replayed"
        )
        stage.narrator.say("   a new assertion over the old challenge:")
        let used = stage.admitted.fields.first { $0.name == "App-Attest-Challenge" }?.value
        var call = Call("POST", "/v1/orders", content: stage.admitted.content)
        call = stage.phone.signed(call, used)
        let second = try stage.exchange(call)
        stage.narrator.claim(
            "refused with 401 challenge-spent",
            second.status == 401 && second.problem("reason") == "challenge-spent"
        )
        stage.claimOriginSawNothing()
    }
}
