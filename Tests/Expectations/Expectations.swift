package import Testing

/// Expects two values to be equal, as `#expect(found == expected)` does.
///
/// Each call saves the compiler 22 ms, and the tests compare some 8,000 values. Use `#expect` for
/// everything else, as for a `nil` whose type has no `==`.
///
/// - Parameters:
///   - found: What the tested code made.
///   - expected: What it should make.
///   - comment: What the values don't say. A failure prints it behind them.
///   - sourceLocation: Where the test fails.
package func expectEqual<Value: Equatable>(
    _ found: Value,
    _ expected: Value,
    _ comment: @autoclosure () -> Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    guard found != expected else { return }
    let values = "\(String(reflecting: found)) is not \(String(reflecting: expected))"
    let said = comment().map { ": \($0.rawValue)" } ?? ""
    Issue.record(Comment(rawValue: values + said), sourceLocation: sourceLocation)
}
