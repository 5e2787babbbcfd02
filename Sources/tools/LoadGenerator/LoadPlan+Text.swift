import Verification

extension LoadPlan {
    /// `open loop, 5,000 requests/s for 60 s after 5 s of warm-up; 64 connections, 1 lane`.
    var loadText: String {
        let pacing = options.pacing
        var text: String
        if let rate = pacing.rate {
            text = "open loop, \(Figures.fixed(rate, rate < 10 ? 1 : 0)) requests/s"
        } else {
            text = "closed loop"
        }
        if let duration = pacing.duration {
            text += " for \(Figures.fixed(Double(duration) / 1e9, 0)) s"
        }
        if let count = pacing.countLimit { text += ", at most \(Figures.count(count)) requests" }
        if pacing.warmUp > 0 {
            text += " after \(Figures.fixed(Double(pacing.warmUp) / 1e9, 0)) s of warm-up"
        }
        let lanes = options.lanes == 1 ? "1 lane" : "\(options.lanes) lanes"
        text += "; \(options.connections) connections, \(lanes)"
        return options.proof == .session ? text + "; signed with sessions" : text
    }
}
