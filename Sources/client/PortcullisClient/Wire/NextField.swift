/// `App-Attest-Next`: what a request would be told if its rule enforced. An item with parameters
/// (RFC 8941 §3.3): `sign-again;sign="method target";headers="a b";accept="assertion"`.
struct NextField: Hashable, Sendable {
    let next: GatewayRefusal.Next
    let lesson: RouteLesson?

    private static let bytesMax = 8 << 10

    init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax else { return nil }
        var reader = FieldReader(text)
        reader.skipSpace()
        guard let word = reader.token(), let next = GatewayRefusal.Next(rawValue: word) else {
            return nil
        }
        var parameters: [String: String] = [:]
        while true {
            reader.skipSpace()
            guard reader.take(";") else { break }
            reader.skipSpace()
            guard let (name, value) = reader.parameter() else { break }
            parameters[name] = value
        }
        self.next = next
        lesson = RouteLesson(
            sign: parameters["sign"],
            headers: parameters["headers"],
            accept: parameters["accept"]
        )
    }
}
