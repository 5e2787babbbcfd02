package import Testing

/// Expects two values to be equal, as `#expect(found == expected)` does.
///
/// A call costs the compiler a millisecond, the macro more than twenty, and the tests compare some
/// 8,000 values. Everything else that is expected is `#expect`'s.
///
/// - Parameters:
///   - found: What the tested code made.
///   - expected: What it should make.
///   - comment: What the values don't say, printed with them.
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
