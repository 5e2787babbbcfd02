package import Encodings

/// The origins that would have no server that is up once one of their servers is drained, by what
/// the running gateway's page `/status` says.
package struct DrainOutlook: Equatable, Sendable {
    /// Their names, in the order of the configuration.
    package let origins: [String]

    /// - Parameters:
    ///   - server: its name in the configuration.
    ///   - status: the page.
    /// - Throws: where the page is none.
    package init(without server: String, _ status: Span<UInt8>) throws(JSONError) {
        var reader = JSONReader()
        var origins: [String] = []
        try reader.beginObject(status)
        while let name = try reader.nextName(status) {
            guard name == Array("origins".utf8) else {
                try reader.skipValue(status, depth: 1)
                continue
            }
            try reader.beginArray(status)
            while try reader.nextElement(status) {
                let origin = try Origin(&reader, status)
                if origin.isOut(without: server.lowercased()) { origins.append(origin.name) }
            }
        }
        try reader.end(status)
        self.origins = origins
    }

    private struct Origin {
        private(set) var name = ""
        /// Name and state.
        private var servers: [(name: String, state: String)] = []

        init(_ reader: inout JSONReader, _ text: Span<UInt8>) throws(JSONError) {
            try reader.beginObject(text)
            while let member = try reader.nextName(text) {
                switch String(decoding: member, as: UTF8.self) {
                case "name": name = try reader.word(text)
                case "servers":
                    try reader.beginArray(text)
                    while try reader.nextElement(text) {
                        servers.append(try Self.server(&reader, text))
                    }
                default: try reader.skipValue(text, depth: 3)
                }
            }
        }

        private static func server(
            _ reader: inout JSONReader,
            _ text: Span<UInt8>
        ) throws(JSONError) -> (name: String, state: String) {
            var server = (name: "", state: "")
            try reader.beginObject(text)
            while let member = try reader.nextName(text) {
                switch String(decoding: member, as: UTF8.self) {
                case "server": server.name = try reader.word(text)
                case "state": server.state = try reader.word(text)
                default: try reader.skipValue(text, depth: 5)
                }
            }
            return server
        }

        /// Whether it has this server, and no other one is up.
        func isOut(without server: String) -> Bool {
            let others = servers.filter { $0.name.lowercased() != server }
            return others.count < servers.count && !others.contains { $0.state == "up" }
        }
    }
}

extension JSONReader {
    fileprivate mutating func word(_ text: Span<UInt8>) throws(JSONError) -> String {
        guard case .string(let bytes) = try scalar(text) else { throw error("use a string") }
        return String(decoding: bytes, as: UTF8.self)
    }
}
