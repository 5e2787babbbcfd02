/// Answers cases of published suites, each by the verifier or the reader that the gateway uses.
///
/// A line of its input is a question: a kind, and then bytes in hexadecimal digits. A line of its
/// output is the answer: `accepted`, or why not. `Tests/Suites` reads the suites and asks.
@main enum PortcullisSuites {
    static func main() {
        while let line = readLine() {
            var question = SuiteQuestion(line)
            print(question.answer ?? "no-question")
        }
    }
}
