/// Which part of a report is asked for.
package struct ReportScope: Sendable {
    /// `nil` for all rules.
    package var rule: String?
    package var windows: [ReportWindow]

    package init(rule: String? = nil, windows: [ReportWindow] = ReportWindow.allCases) {
        self.rule = rule
        self.windows = windows
    }
}

/// Knows what was counted for reports.
package protocol ReportSource: Sendable {
    /// Collects what the lanes have counted and hands a report over, once, on any thread; `nil`
    /// when that takes too long.
    func report(
        of scope: ReportScope,
        _ completion: @escaping @Sendable (Report?) -> Void
    )
}
