/// Prints the progress of a run.
package struct Progress: Sendable {
    /// How a run is shown while it lasts.
    package enum Style: Sendable {
        case silent
        /// A line each time this number of seconds has passed.
        case lines(every: Int)
        /// One line that is replaced each second, on a terminal with this number of columns.
        case live(columns: @Sendable () -> Int)
    }

    private let style: Style
    private let write: @Sendable (String) -> Void
    private var line = LiveLine([])
    private var count = 0
    /// The live line is on the terminal, and not ended.
    private var isLineOpen = false

    /// Carriage return, and the rest of the line cleared (ECMA-48 EL).
    private static let lineStart = "\r\u{1B}[K"

    /// - write: takes a text with all its control characters, at once.
    package init(_ style: Style, write: @escaping @Sendable (String) -> Void) {
        self.style = style
        self.write = write
    }

    mutating func begin(_ stages: [LoadStage]) { line = LiveLine(stages) }

    /// Prints what the run does before it sends.
    func say(_ text: String) {
        if case .silent = style { return }
        write(text + "\n")
    }

    /// Prints a fault, also where no progress is shown.
    mutating func report(_ fault: String) {
        write((isLineOpen ? Self.lineStart : "") + fault + "\n")
        isLineOpen = false
    }

    /// Ends the progress: the last line stays.
    mutating func end() {
        if isLineOpen { write("\n") }
        isLineOpen = false
    }

    mutating func beat(_ second: RunSecond) {
        count += 1
        switch style {
        case .silent: break
        case .lines(let seconds):
            guard count % max(seconds, 1) == 0 else { return }
            let time = Figures.right(Figures.fixed(second.at, 0), 4)
            let stage = second.stage.map { "stage \($0 + 1)  " } ?? ""
            write("\(time) s  \(stage)\(LiveLine.figures(of: second))\n")
        case .live(let columns):
            write(Self.lineStart + line.text(after: second, columns: columns()))
            isLineOpen = true
        }
    }
}
