import Histogram

/// Prints the progress of a run.
package struct Progress: Sendable {
    private let write: @Sendable (String) -> Void
    private let isTerminal: Bool

    /// The number of beats for each line where standard error is no terminal.
    private static let beatsPerLine = 5

    /// - Parameters:
    ///   - isTerminal: each beat replaces the previous line; otherwise every fifth beat is a line.
    ///   - write: takes a text with all its control characters, at once.
    package init(isTerminal: Bool, write: @escaping @Sendable (String) -> Void) {
        self.isTerminal = isTerminal
        self.write = write
    }

    /// Prints a line.
    package func say(_ text: String) { write(text + "\n") }

    /// Ends the progress: the last line stays.
    package func end() { if isTerminal { write("\n") } }

    /// - `number`: of the beat, from 1.
    func beat(_ second: Summary.Second, number: Int) {
        guard isTerminal || number % Self.beatsPerLine == 1 else { return }
        let interval = second.interval
        let rate = second.length > 0 ? Double(interval.answered) / second.length : 0
        var text = "\(Figures.right(Figures.fixed(second.at, 0), 4)) s  "
        text += "\(Figures.right(Figures.count(UInt64(rate)), 8)) answers/s  "
        for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("max", 100)] {
            let value = interval.latencies.valueAtPercentile(percent)
            text += "\(name) \(Figures.left(Figures.latency(value), 8))  "
        }
        if interval.backlog > 0 { text += "backlog \(Figures.count(interval.backlog))  " }
        if interval.failures > 0 { text += "failed \(Figures.count(interval.failures))  " }
        text += "deviations \(Figures.count(interval.deviations))"
        // Carriage return, and the rest of the line cleared (ECMA-48 EL).
        write(isTerminal ? "\r\u{1B}[K\(text)" : text + "\n")
    }
}
