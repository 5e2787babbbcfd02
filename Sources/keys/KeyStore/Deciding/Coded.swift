internal import DeviceKey
internal import Encodings
internal import RequestBinding
internal import Signatures
internal import Tokens

/// A value in questions and answers between two processes of a gateway.
protocol Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault)
    func write(to out: inout ByteWriter)
}

extension ByteWriter {
    /// Writes values one after the other.
    mutating func put<each Value: Coded>(_ value: repeat each Value) {
        repeat (each value).write(to: &self)
    }
}

extension ByteReader {
    /// Reads the next value.
    mutating func next<Value: Coded>() throws(Fault) -> Value { try Value(from: &self) }

    /// What was read, where it has a meaning.
    static func known<Value>(_ value: Value?) throws(Fault) -> Value {
        guard let value else { throw Fault() }
        return value
    }
}

/// One of a few values, written as its place among them.
protocol Listed: Coded, Equatable {
    static var listed: [Self] { get }
}

extension Listed where Self: CaseIterable {
    static var listed: [Self] { Array(allCases) }
}

extension Listed {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        let (place, all) = (Int(try bytes.byte()), Self.listed)
        guard all.indices.contains(place) else { throw ByteReader.Fault() }
        self = all[place]
    }

    func write(to out: inout ByteWriter) {
        guard let place = Self.listed.firstIndex(of: self) else {
            preconditionFailure("Listed: \(self) is in no list")
        }
        out.byte(UInt8(place))
    }
}

extension Bool: Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) { self = try bytes.flag() }
    func write(to out: inout ByteWriter) { out.flag(self) }
}

extension Int64: Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) { self = try bytes.number() }
    func write(to out: inout ByteWriter) { out.number(self) }
}

extension [UInt8]: Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) { self = try bytes.block() }
    func write(to out: inout ByteWriter) { out.block(self) }
}

extension Optional: Coded where Wrapped: Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        self = try bytes.flag() ? try Wrapped(from: &bytes) : nil
    }
    func write(to out: inout ByteWriter) {
        out.flag(self != nil)
        self?.write(to: &out)
    }
}

extension ChallengePurpose: Listed {}
extension ChallengeSerial: Coded {}
extension VerifiedEvidence: Coded {}

extension KeyID: Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        self = try ByteReader.known(KeyID(bytes: try bytes.block(max: 32)))
    }
    func write(to out: inout ByteWriter) { out.block(bytes) }
}

extension SHA256Digest: Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        self = try ByteReader.known(SHA256Digest(bytes: try bytes.block(max: 32)))
    }
    func write(to out: inout ByteWriter) { out.block(array) }
}

extension SequenceNumber: Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        self = try ByteReader.known(SequenceNumber(try bytes.word()))
    }
    func write(to out: inout ByteWriter) { out.word(rawValue) }
}

extension SignCounter: Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        self.init(rawValue: try ByteReader.known(UInt32(exactly: try bytes.word())))
    }
    func write(to out: inout ByteWriter) { out.word(UInt64(rawValue)) }
}

extension CounterUse: Coded {
    /// The rule is written as its width, 1…64, or as 0 for strict.
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        let width = try bytes.byte()
        self.init(
            of: try bytes.next(),
            counter: try bytes.next(),
            rule: width == 0 ? .strict : .window(Int(width)),
            challenge: try bytes.next()
        )
    }

    func write(to out: inout ByteWriter) {
        switch rule {
        case .strict: out.byte(0)
        case .window(let width): out.byte(UInt8(min(max(width, 1), 64)))
        }
        out.put(keyID, counter, challenge)
    }
}

extension SpentToken: Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        self.init(try bytes.next(), end: try bytes.next())
    }
    func write(to out: inout ByteWriter) { out.put(digest, end) }
}

/// A key that was just enrolled, as a line of an export.
extension KeyRecord: Coded {
    init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        let line = try bytes.block(max: KeyLine.bytesMax)
        self = try ByteReader.known(try? KeyLine.record(line.span))
    }
    func write(to out: inout ByteWriter) { out.block(Array(KeyLine.text(self).utf8)) }
}
