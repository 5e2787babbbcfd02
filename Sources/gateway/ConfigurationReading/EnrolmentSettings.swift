import Rules
package import Verification

/// Who may enrol a key, and when: applied where an enrolment challenge is asked for.
package struct EnrolmentSettings: Hashable, Sendable {
    /// `rate`, `burst` and the ramp.
    ///
    /// * `rate`: enrolment challenges a second, for all apps together. Default 100/s, 1/s…10000/s.
    ///   Apple asks to stay below 100 new keys a second.
    /// * `burst`: challenges at once after a pause. Default 200, 1…1000000.
    /// * `percent`, or `from`, `to`, `start` and `end`: the share of the keys that may enrol, as a
    ///   rule's rollout has it. Default: all.
    package var admission = EnrolmentAdmission.Settings()

    package init() {}

    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let share = MappingReader.scheduleKeys
        guard let node,
            let reader = MappingReader(
                node,
                "enrolment",
                keys: ["rate", "burst"] + share,
                log: log
            )
        else { return }
        let rate = reader.value("rate", use: "challenges a second, 1/s…10000/s") { text in
            let number = text.hasSuffix("/s") ? MappingReader.digits(text.dropLast(2)) : nil
            return number.flatMap { (1...10_000).contains($0) ? $0 : nil }
        }
        if let rate { admission.perSecond = rate.value }
        if let number = reader.integer("burst", in: 1...1_000_000) {
            admission.burst = number.value
        }
        if share.contains(where: reader.has), let schedule = reader.schedule() {
            admission.ramp = schedule
        }
    }
}
