/// Why the story can't go on.
struct DemoError: Error {
    let text: String

    init(_ text: String) { self.text = text }
}
