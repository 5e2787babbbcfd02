/// `App-Attest-Next`: what a request would be told if its rule enforced:
/// `enrol;sign="method target";headers="a b";accept="assertion";counter=64;key="…"`,
/// and `device="token"` where the rule asks for a device token.
struct NextField: Hashable, Sendable {
    let next: GatewayRefusal.Next
    let lesson: RouteLesson?
    /// The key that the request named; `nil` where it named none, and from older gateways.
    let keyID: String?

    init?(_ text: String) {
        guard let item = FieldItem(text), let next = GatewayRefusal.Next(rawValue: item.word)
        else { return nil }
        self.next = next
        keyID = item["key"]
        lesson = RouteLesson(
            sign: item["sign"],
            headers: item["headers"],
            accept: item["accept"],
            counter: item["counter"],
            device: item["device"],
            observes: true
        )
    }
}
