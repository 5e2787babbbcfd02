/// The uses of one batch, from before the journal is asked until their tickets are answered.
struct DecidedUses {
    /// What has come of each, in the order of the tickets.
    private(set) var decisions: [(ticket: CommitTicket, decision: ConsumeDecision)] = []
    /// Those that the journal is asked about.
    private(set) var asked: [CounterUse] = []
    /// Uses that are good in memory and unknown to the journal, which is told later.
    private(set) var retained: [CounterChange] = []
    /// How many the journal has used.
    private(set) var usedCount = 0
    /// Why the journal could not decide one of them.
    private(set) var error: JournalError?
    /// The same as `asked`, with their places in `decisions`.
    private var waiting: [(place: Int, use: WaitingUse)] = []

    /// Refuses what has become impossible while it waited.
    init(_ uses: [PendingChanges.Use]) {
        for (place, use) in uses.enumerated() {
            if let refusal = use.waiting.refusal() {
                decisions.append((use.ticket, .refused(refusal)))
            } else {
                // Replaced by ``take(_:)``.
                decisions.append((use.ticket, .unavailable))
                asked.append(use.waiting.use)
                waiting.append((place, use.waiting))
            }
        }
    }

    var isEmpty: Bool { decisions.isEmpty }

    /// The journal has answered; or has failed, for all of them.
    mutating func take(_ result: Result<[UseAnswer], JournalError>) {
        for (index, (place, use)) in waiting.enumerated() {
            let answer: UseAnswer =
                switch result {
                case .success(let answers): answers[index]
                case .failure(let error): .failed(error)
                }
            if case .used = answer { usedCount += 1 }
            if case .failed(let error) = answer { self.error = error }
            let (decision, change) = use.settle(answer)
            decisions[place].decision = decision
            if let change { retained.append(change) }
        }
    }
}
