/// What a client speaks. The raw value is the log's word: add, do not rename.
package enum ClientProtocol: String, CaseIterable, Sendable {
    case http10 = "http/1.0"
    case http11 = "http/1.1"
    case http2 = "h2"
}
