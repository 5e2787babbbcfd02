import Expectations
import KeyAttestation
import Testing

@Suite struct StatusListTests {
    private func list(_ entries: String) throws -> StatusList {
        try StatusList(json: Array(#"{"entries": {\#(entries)}}"#.utf8))
    }

    @Test(arguments: ["ab01", "AB01", "00ab01", "000AB01", "aB01"])
    func `a serial is a number, however it is spelled`(_ spelling: String) throws {
        let list = try list(#""\#(spelling)": {"status": "REVOKED"}"#)
        let serial = try #require(CertificateSerial("ab01"))
        expectEqual(CertificateSerial(spelling), serial)
        expectEqual(list.revoked(among: [serial]), serial)
        for other in ["ab1", "ab010", "b01", "43777"] {
            expectEqual(list.revoked(among: [try #require(CertificateSerial(other))]), nil)
        }
    }

    @Test func `digits alone are hexadecimal`() throws {
        let list = try list(#""5871646753572800414": {"status": "REVOKED"}"#)
        let serial = try #require(CertificateSerial("05871646753572800414"))
        expectEqual(list.revoked(among: [serial]), serial)
        let decimal = try #require(CertificateSerial("517c34e1b4a6b1de"))
        expectEqual(list.revoked(among: [decimal]), nil)
    }

    @Test(arguments: ["", "0x1", "-1", "1 ", "g", "１"])
    func `other text is no serial`(_ text: String) {
        expectEqual(CertificateSerial(text), nil)
    }

    @Test func `zero has one spelling`() {
        expectEqual(CertificateSerial("000")?.description, "0")
    }

    @Test func `an entry counts whatever its status`() throws {
        let list = try list(#""a": {"status": "SUSPENDED"}, "b": {"status": "WATCHED"}"#)
        expectEqual(list.count, 2)
        for text in ["a", "b"] {
            #expect(list.revoked(among: [try #require(CertificateSerial(text))]) != nil)
        }
    }

    @Test(
        arguments: [
            "", "[]", "null", "{}", #"{"entries": null}"#, #"{"entries": []}"#,
            #"{"entries": {}} {}"#, #"{"entries": {}, "entries": {}}"#,
            #"{"entries": {"a": "REVOKED"}}"#, #"{"entries": {"a": {}}}"#,
            #"{"entries": {"a": {"status": 1}}}"#, #"{"entries": {"a": {"status": null}}}"#,
            #"{"entries": {"a": {"status": "A", "status": "B"}}}"#,
            #"{"entries": {"x": {"status": "REVOKED"}}}"#,
            #"{"entries": {"": {"status": "REVOKED"}}}"#,
            #"{"entries": {"a": {"status": "REVOKED"}}"#,
        ]
    )
    func `a text that is no list is an error and no empty list`(_ text: String) {
        #expect(throws: StatusListError.self) { try StatusList(json: Array(text.utf8)) }
    }

    @Test func `members that are not known are passed over`() throws {
        let list = try StatusList(
            json: Array(
                #"{"a": [1.5, {"b": null}], "entries": {"a": {"x": {}, "status": "REVOKED"}}}"#
                    .utf8
            )
        )
        expectEqual(list.count, 1)
        expectEqual(StatusList.empty.count, 0)
    }

    @Test func `too many bytes are no list`() {
        let json = [UInt8](repeating: 0x20, count: StatusList.bytesMax + 1)
        #expect(throws: StatusListError.self) { try StatusList(json: json) }
    }
}
