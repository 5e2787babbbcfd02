import Encodings

/// Parts of the page `/status` of a running gateway as documents of their own.
enum StatusPage {
    /// A document with some members of the page as they stand there, so that what the page gets
    /// later is in the document, too; `nil` where the page lacks one.
    static func document(with names: [String], of page: [UInt8]) -> String? {
        var parts: [String: String] = [:]
        do throws(JSONError) {
            var reader = JSONReader()
            let text = page.span
            try reader.beginObject(text)
            while let bytes = try reader.nextName(text) {
                let name = String(decoding: bytes, as: UTF8.self)
                _ = reader.peek(text)
                let start = reader.index
                try reader.skipValue(text, depth: 1)
                guard names.contains(name) else { continue }
                parts[name] = String(decoding: page[start..<reader.index], as: UTF8.self)
            }
            try reader.end(text)
        } catch {
            return nil
        }
        let members = names.compactMap { name in parts[name].map { "  \"\(name)\": \($0)" } }
        guard members.count == names.count else { return nil }
        return "{\n" + members.joined(separator: ",\n") + "\n}\n"
    }

    /// Prints such a document, or says that there is none.
    static func print(_ names: [String], of page: [UInt8]) -> ExitStatus {
        guard let text = document(with: names, of: page) else {
            StandardError.write("portcullis: the gateway's page /status can't be read")
            return .no
        }
        return ExitStatus(isYes: StandardOutput.write(text))
    }
}
