// The main of the tests' program. Where SwiftPM finds a file of this name beside the test targets,
// it makes none, and looks for no test of XCTest, which this project has none of. That search reads
// the compiler's index of every test target: with this file, a build may go without an index.

import Testing
import XCTest

@main
private enum TestProgram {
    /// SwiftPM asks for the tests of each library in a run of its own.
    static func main() async {
        let arguments = CommandLine.arguments
        guard let option = arguments.firstIndex(of: "--testing-library"),
            arguments.dropFirst(option + 1).first == "swift-testing"
        else { XCTMain([]) }
        await Testing.__swiftPMEntryPoint() as Never
    }
}
