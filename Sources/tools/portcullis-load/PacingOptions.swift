import ArgumentParser
import LoadGenerator

/// When requests are sent.
struct PacingOptions: ParsableArguments {
    @Option(
        help: "Requests a second, over all connections; without it a closed loop.",
        transform: LoadOptionText.number(LoadStage.rateMin...LoadStage.rateMax)
    )
    var rate: Double?

    @Option(
        help: "A stage: 30s:100/s, or 1m:100..500/s for a ramp, or 1m:..500/s; repeated.",
        transform: LoadOptionText.stage
    )
    var stage: [LoadStage] = []

    @Option(
        help: "How long: 30s, 5m, 1h. Default 10s unless --count or --stage is given.",
        transform: LoadOptionText.time
    )
    var duration: LoadTime?

    @Option(help: "The most requests of the run.")
    var count: UInt64?

    @Option(
        help: "A warm-up time: its requests are checked but not measured.",
        transform: LoadOptionText.time
    )
    var warmUp = LoadTime.seconds(0)

    func pacing() throws(LoadError) -> Pacing {
        guard stage.isEmpty else {
            guard rate == nil, duration == nil else {
                throw LoadError("--stage has rate and time: leave out --rate and --duration")
            }
            return try Pacing(stages: stage, countLimit: count, warmUp: warmUp.nanoseconds)
        }
        let length = duration ?? (count == nil ? .seconds(10) : nil)
        return Pacing(
            rate: rate,
            countLimit: count,
            duration: length?.nanoseconds,
            warmUp: warmUp.nanoseconds
        )
    }
}
