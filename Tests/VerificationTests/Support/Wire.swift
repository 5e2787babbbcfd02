import HTTPWire
import SoftwareAuthenticator

/// A request as a client writes it, before it is bytes.
struct Wire {
    /// How the content is announced.
    enum Framing {
        /// By the length of the content; not at all when there is none.
        case length
        case stated(Int)
        case chunked
    }

    var method: String
    var target: String
    var fields: [(name: String, value: String)]
    var content: [UInt8]
    var framing = Framing.length

    init(_ request: SoftwareKey.Request, _ proof: RequestProof) {
        self.init(request, proof: proof.fields)
    }

    init(_ request: SoftwareKey.Request, _ proof: SessionProof) {
        self.init(request, proof: proof.fields)
    }

    private init(_ request: SoftwareKey.Request, proof: [(name: String, value: String)]) {
        method = request.method
        target = request.target
        content = request.content
        fields = request.fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        fields += proof
    }

    init(_ method: String, _ target: String) {
        self.method = method
        self.target = target
        fields = []
        content = []
    }

    /// The head's bytes.
    var head: [UInt8] {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: api.example.com\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        switch framing {
        case .length: if !content.isEmpty { text += "Content-Length: \(content.count)\r\n" }
        case .stated(let count): text += "Content-Length: \(count)\r\n"
        case .chunked: text += "Transfer-Encoding: chunked\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    mutating func remove(_ name: String) {
        fields.removeAll { $0.name.lowercased() == name.lowercased() }
    }

    /// Puts one field in the place of all of that name.
    mutating func set(_ name: String, _ value: String) {
        remove(name)
        fields.append((name, value))
    }

    func value(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}
