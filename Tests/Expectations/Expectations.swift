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
///   - sourceLocation: Where the test fails; `nil` is the place of the call.
///   - fileID: The call's file. These four cost the compiler less than one `#_sourceLocation`.
///   - filePath: The path of the call's file.
///   - line: The call's line.
///   - column: The call's column.
package func expectEqual<Value: Equatable>(
    _ found: Value,
    _ expected: Value,
    _ comment: @autoclosure () -> Comment? = nil,
    sourceLocation: SourceLocation? = nil,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column
) {
    guard found != expected else { return }
    let values = "\(String(reflecting: found)) is not \(String(reflecting: expected))"
    let said = comment().map { ": \($0.rawValue)" } ?? ""
    let call = SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
    Issue.record(Comment(rawValue: values + said), sourceLocation: sourceLocation ?? call)
}
