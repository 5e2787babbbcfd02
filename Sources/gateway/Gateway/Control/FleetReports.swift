import ConfigurationReading
import Dispatch
import Encodings
import Glibc
import KeyStore
import PostgreSQLKeyStore
import Services

/// The report and the refusals of all gateways of a fleet.
///
/// An operator's question is a row of the database. A notification, or the next poll, has each
/// gateway answer it with a row of its own; the gateway that was asked waits for these, and merges
/// them with its own counts. Of a gateway that does not answer, what it said last counts: each
/// says it once in a minute, unasked.
final class FleetReports: Sendable {
    /// The longest wait for the other gateways: 2 s.
    private static let patience = Duration.seconds(2)
    /// The pause between two looks for answers, in milliseconds.
    private static let pause: Int32 = 50
    /// The most questions under way; further ones are answered 503.
    private static let questionsMax = 4
    /// The most operators that wait for one question.
    private static let waitingMax = 64
    /// The time in which operators who ask for a report share the answers: a second.
    private static let freshness = DispatchTimeInterval.seconds(1)
    /// The interval of what is said unasked: a minute.
    private static let pace = DispatchTimeInterval.seconds(60)

    private typealias Answers = Result<[FleetAnswer], JournalError>

    private struct State {
        /// The operators that wait, by what they ask.
        var waiting: [FleetQuestion.Subject: [@Sendable (Answers?) -> Void]] = [:]
        /// The reports of the last ``freshness``: whoever may read pages asks no more often.
        var reports: Answers?
        /// The questions of the last reading, which were answered.
        var answered: Set<Int64> = []
        /// Answers since the start that the database has, and those that it has not.
        var counts = FleetFacts.Answers()
        var isClosed = false
    }

    private let plane: ControlPlane
    private let reporting: Reporting
    private let access: FleetAccess
    /// Names this process.
    private let instance: Int64
    /// The queue on which the database is waited for, at most ``questionsMax`` times at once.
    private let queue = DispatchQueue(label: "portcullis.fleet.reports", attributes: .concurrent)
    private let state: QueueBound<State>

    init(
        _ plane: ControlPlane,
        _ reporting: Reporting,
        access: FleetAccess,
        instance: Int64
    ) {
        (self.plane, self.reporting) = (plane, reporting)
        (self.access, self.instance) = (access, instance)
        state = QueueBound(State(), on: plane.queue)
    }

    func close() { state.value.isClosed = true }

    /// The answers since the start.
    var counts: FleetFacts.Answers { state.value.counts }

    // MARK: Asking

    /// Asks the other gateways. `completion` is called on the control queue; `nil` where too many
    /// ask. Operators with the same question at the same moment share the answers.
    private func ask(
        _ about: FleetQuestion.Subject,
        _ completion: @escaping @Sendable (Answers?) -> Void
    ) {
        if about == .report, let reports = state.value.reports { return completion(reports) }
        if let others = state.value.waiting[about] {
            guard others.count < Self.waitingMax else { return completion(nil) }
            state.value.waiting[about]?.append(completion)
            return
        }
        guard state.value.waiting.count < Self.questionsMax else { return completion(nil) }
        state.value.waiting[about] = [completion]
        queue.async { [self] in
            let answers = Result { () throws(JournalError) in try gather(about) }
            plane.perform { [self] in answered(about, answers) }
        }
    }

    private func answered(_ about: FleetQuestion.Subject, _ answers: Answers) {
        if about == .report {
            state.value.reports = answers
            plane.perform(after: Self.freshness) { [self] in state.value.reports = nil }
        }
        for waiting in state.value.waiting.removeValue(forKey: about) ?? [] { waiting(answers) }
    }

    /// Blocks until all that were heard of lately have answered, or ``patience`` is over.
    private func gather(_ about: FleetQuestion.Subject) throws(JournalError) -> [FleetAnswer] {
        let deadline = ContinuousClock.now + Self.patience
        let question = try access.database.ask(about, by: instance)
        while ContinuousClock.now < deadline,
            try access.database.awaits(question, by: instance)
        {
            poll(nil, 0, Self.pause)
        }
        return try access.database.answers(to: question, by: instance)
    }

    /// Reads what others have said.
    ///
    /// - gateway: the one that is asked about; `nil` for all.
    private func read<Told>(
        _ answers: Answers,
        of gateway: String?,
        _ read: ([UInt8]) throws(ByteReader.Fault) -> Told
    ) -> (gateways: ToldGateways, told: [(value: Told, age: Int64)]) {
        var entries =
            gateway == nil || gateway == access.name
            ? [ToldGateways.Entry(access.name, .answered)] : []
        guard case .success(let answers) = answers else {
            if let gateway, gateway != access.name { entries = [.init(gateway, .unheard)] }
            return (ToldGateways(entries, isAlone: true), [])
        }
        var told: [(value: Told, age: Int64)] = []
        for answer in answers where gateway == nil || gateway == answer.name {
            var standing = ToldGateways.Standing.unheard
            do throws(ByteReader.Fault) {
                if let bytes = answer.bytes {
                    told.append((try read(bytes), answer.age))
                    standing =
                        answer.isToQuestion
                        ? .answered : .lastSaid(answer.age, hasEnded: answer.hasEnded)
                }
            } catch {
                // The form of another version: it is said that nothing of it is counted.
                standing = .unheard
            }
            // An ended process that has said nothing is no news.
            guard standing != .unheard || !answer.hasEnded else { continue }
            entries.append(ToldGateways.Entry(answer.name, standing))
        }
        return (ToldGateways(entries), told)
    }

    // MARK: Answering

    /// Begins to say unasked what others would ask.
    func start() { plane.perform(after: .seconds(5)) { [weak self] in self?.turn() } }

    private func turn() {
        guard !state.value.isClosed else { return }
        for about in [FleetQuestion.Subject.report, .refusals] {
            answer(FleetQuestion(id: 0, about: about))
        }
        plane.perform(after: Self.pace) { [weak self] in self?.turn() }
    }

    /// Answers what operators ask at other gateways.
    ///
    /// - questions: all that are open, the latest first.
    func answer(_ questions: [FleetQuestion]) {
        let known = state.value.answered
        state.value.answered = Set(questions.map(\.id))
        var subjects: Set<FleetQuestion.Subject> = []
        for question in questions where !known.contains(question.id) {
            // An answer to a later question is one to the earlier ones.
            if subjects.insert(question.about).inserted { answer(question) }
        }
    }

    private func answer(_ question: FleetQuestion) {
        switch question.about {
        case .report:
            reporting.report(of: ReportScope()) { [self] report in
                if let report { say(question) { report.told } }
            }
        case .refusals: sayRefusals(question, named: nil)
        case .named(let text):
            guard let name = RefusalName(Array(text.utf8)) else { return }
            sayRefusals(question, named: name)
        }
    }

    private func sayRefusals(_ question: FleetQuestion, named name: RefusalName?) {
        reporting.refusals(named: name) { [self, gateway = access.name] notes in
            guard let notes else { return }
            say(question) { ToldRefusals(notes, named: name, of: gateway).told }
        }
    }

    private func say(_ question: FleetQuestion, _ bytes: @escaping @Sendable () -> [UInt8]) {
        queue.async { [self] in
            let bytes = bytes()
            let result = Result { () throws(JournalError) in
                try access.database.answer(question, bytes, by: instance)
            }
            plane.perform { [self] in
                switch result {
                case .success: state.value.counts.saved &+= 1
                // The gateway that asks names this one as one that has not answered.
                case .failure: state.value.counts.lost &+= 1
                }
            }
        }
    }
}

extension FleetReports {
    /// Asks the others, unless this gateway alone is meant.
    private func ask(
        _ about: FleetQuestion.Subject,
        at gateway: String?,
        _ completion: @escaping @Sendable (Answers?) -> Void
    ) {
        plane.perform { [self] in
            guard gateway != access.name else { return completion(Answers.success([])) }
            ask(about, completion)
        }
    }
}

extension FleetReports: ReportSource {
    package func report(
        of scope: ReportScope,
        _ completion: @escaping @Sendable (Report?) -> Void
    ) {
        ask(.report, at: scope.gateway) { [self] answers in
            guard let answers else { return completion(nil) }
            reporting.report(of: scope) { [self] own in
                guard let own else { return completion(nil) }
                queue.async { [self] in
                    let (gateways, told) = read(answers, of: scope.gateway) {
                        (bytes) throws(ByteReader.Fault) in
                        try Report(told: bytes)
                    }
                    completion(
                        Report(
                            own,
                            isCounted: scope.gateway == nil || scope.gateway == access.name,
                            others: told.map { (report: $0.value, age: $0.age) },
                            scope,
                            of: gateways
                        )
                    )
                }
            }
        }
    }
}

extension FleetReports: RefusalSource {
    package func refusals(
        named name: RefusalName?,
        at gateway: String?,
        _ completion: @escaping @Sendable (ToldRefusals?) -> Void
    ) {
        ask(name.map { .named($0.word) } ?? .refusals, at: gateway) { [self] answers in
            guard let answers else { return completion(nil) }
            reporting.refusals(named: name) { [self] notes in
                guard let notes else { return completion(nil) }
                queue.async { [self] in
                    let isCounted = gateway == nil || gateway == access.name
                    var all = ToldRefusals(isCounted ? notes : [], named: name, of: access.name)
                    let (gateways, told) = read(answers, of: gateway) {
                        (bytes) throws(ByteReader.Fault) in
                        try ToldRefusals(told: bytes)
                    }
                    for (others, _) in told { all.add(others, named: name) }
                    all.gateways = gateways
                    completion(all)
                }
            }
        }
    }
}
