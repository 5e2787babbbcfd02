import HTTPWire

/// The gateway's own endpoints, under the path that the configuration names.
enum Endpoint: String {
    /// `POST …/challenges`
    case challenges
    /// `POST …/keys`
    case keys
    /// A path of the gateway's, but none of its endpoints.
    case unknown
    /// An endpoint that was asked with a method it doesn't have.
    case wrongMethod = "wrong-method"

    /// `nil` when the path is not the gateway's. Compared octet by octet: another spelling of the
    /// path is the origin's.
    init?(_ head: borrowing RequestHead, _ octets: Span<UInt8>, under prefix: [UInt8]) {
        let path = head.path
        guard path.count > prefix.count, octets[path.lowerBound + prefix.count] == UInt8(ascii: "/")
        else { return nil }
        for index in prefix.indices where octets[path.lowerBound + index] != prefix[index] {
            return nil
        }
        let start = path.lowerBound + prefix.count + 1
        let name = octets.extracting(start..<path.upperBound).withUnsafeBufferPointer { Array($0) }
        switch String(decoding: name, as: UTF8.self) {
        case "challenges": self = head.method == .post ? .challenges : .wrongMethod
        case "keys": self = head.method == .post ? .keys : .wrongMethod
        default: self = .unknown
        }
    }
}
