import Rules

/// The bytes of one request: its head, and the choice of its content.
struct Message: Sendable {
    /// The head; with content in it when that differs from request to request.
    var head: [UInt8] = []
    /// The template's content that follows; `nil` without content.
    var content: Int?
    /// The content is the changed copy.
    var isContentChanged = false
}

extension RequestTemplate {
    /// Writes a request, into memory that was used for another.
    ///
    /// - `proof`: `nil` for a request without.
    func write(_ proof: ProofTexts?, _ sending: Sending, content: Int, into message: inout Message)
    {
        let made = contents[content]
        begin(sending, into: &message)
        if let proof {
            field(demand.fields.keyID, proof.keyID, into: &message.head)
            field(demand.fields.assertion, proof.assertion, into: &message.head)
            if sending == .tamperedSignature {
                Self.changeSignature(proof.assertion, in: &message.head)
            }
            if demand.sendsChallengeField {
                field(demand.fields.challenge, proof.challenge, into: &message.head)
            }
            if !proof.token.isEmpty { field(demand.tokenField, proof.token, into: &message.head) }
        }
        end(made, content, sending, into: &message)
        guard let place = made.challengePlace, let proof else { return }
        let end = message.head.count
        message.head += message.isContentChanged ? made.changed : made.bytes
        if proof.challenge.count == place.count {
            message.head.replaceSubrange(
                end + place.lowerBound..<end + place.upperBound,
                with: proof.challenge
            )
        }
        message.content = nil
    }

    /// Writes the request line, the host and the user's fields.
    func begin(_ sending: Sending, into message: inout Message) {
        message.head.removeAll(keepingCapacity: true)
        message.head += sending == .tamperedTarget ? otherStart : start
    }

    /// Ends the head, and records the content that follows it.
    func end(_ made: Content, _ content: Int, _ sending: Sending, into message: inout Message) {
        message.head += made.fields
        message.isContentChanged = sending == .tamperedContent
        message.content = made.bytes.isEmpty ? nil : content
    }

    /// The bytes after the head.
    func body(of message: Message) -> [UInt8] {
        guard let content = message.content else { return [] }
        return message.isContentChanged ? contents[content].changed : contents[content].bytes
    }

    func field(_ name: [UInt8], _ value: [UInt8], into head: inout [UInt8]) {
        head += name
        head.append(UInt8(ascii: ":"))
        head.append(UInt8(ascii: " "))
        head += value
        head.append(0x0D)
        head.append(0x0A)
    }

    /// An assertion ends in 37 bytes of authenticator data and the name of the member, 19 bytes
    /// with its head. Before them is the signature, whose last 32 bytes are `s`. So the byte 80
    /// before the end is inside `s`, and a change of a whole character changes it.
    private static let charactersBehindChange = 80 * 4 / 3
    /// The text of an Android key ends in the signature, and so in `s`.
    private static let phoneCharactersBehindChange = 16

    private static func changeSignature(_ assertion: [UInt8], in head: inout [UInt8]) {
        let isPhone = assertion.starts(with: "v1.".utf8)
        // CR and LF follow the value.
        let place =
            head.count - 2 - (isPhone ? phoneCharactersBehindChange : charactersBehindChange)
        guard place > 0 else { return }
        head[place] = head[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
    }
}
