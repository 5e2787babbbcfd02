/// A POST to somebody's service.
package struct HTTPSRequest: Sendable {
    /// Whose certificates are believed.
    package enum Trust: Hashable, Sendable {
        /// The authorities that this machine trusts.
        case system
        /// Those of a PEM text, and no others.
        case pem([UInt8])
    }

    /// `https://host[:port]/path`.
    package var url: String
    /// Beside `Content-Type`, each without line ends.
    package var fields: [(name: String, value: String)] = []
    package var contentType: String
    package var content: [UInt8]
    /// For everything from the look-up of the name to the last byte.
    package var timeout: Duration
    package var trust = Trust.system
    /// `http://host:port` of a proxy that takes CONNECT; `nil` for none. The environment is not
    /// asked.
    package var proxy: String?
    /// Whether the connection is a new one.
    package var avoidsOldConnections = false
    /// The longest answer that is taken.
    package var answerBytesMax = 256 << 10

    package init(url: String, contentType: String, content: [UInt8], timeout: Duration) {
        self.url = url
        self.contentType = contentType
        self.content = content
        self.timeout = timeout
    }
}
