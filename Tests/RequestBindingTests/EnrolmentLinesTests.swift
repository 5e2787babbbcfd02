import Expectations
import RequestBinding
import Testing

@Suite struct EnrolmentLinesTests {
    private let digest = [UInt8](repeating: 7, count: 32)

    @Test func `without a context the challenge's text is the client data`() {
        let data = EnrolmentLines.clientData(challenge: "AQEA", contextDigest: nil)
        expectEqual(String(decoding: data, as: UTF8.self), "AQEA")
    }

    @Test func `with a context there are three lines, each ended by one line feed`() {
        let data = EnrolmentLines.clientData(challenge: "AQEA", contextDigest: digest)
        expectEqual(
            String(decoding: data, as: UTF8.self),
            """
            portcullis-enrolment-v1
            AQEA
            sha-256=:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=:

            """
        )
    }

    @Test func `the client data of an enrolment are those of no request`() {
        let data = EnrolmentLines.clientData(challenge: "AQEA", contextDigest: digest)
        #expect(ClientDataDomain(of: data.span) != .lines)
        #expect(ClientDataDomain(of: data.span) != .challenge)
    }
}
