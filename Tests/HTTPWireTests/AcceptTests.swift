import Testing

@testable import HTTPWire

struct AcceptTests {
    private func accepts(_ fields: String) throws -> Bool {
        let bytes = Array("GET /metrics HTTP/1.1\r\nHost: a\r\n\(fields)\r\n".utf8)
        var head = RequestHead()
        try head.read(bytes.span, isSecure: false, limits: HeadLimits())
        return head.fields.acceptsOpenMetrics(bytes.span)
    }

    @Test(arguments: [
        // Prometheus 2.42, 3.0.
        "application/openmetrics-text;version=1.0.0,"
            + "application/openmetrics-text;version=0.0.1;q=0.75,"
            + "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        "text/plain, application/openmetrics-text", "Application/OpenMetrics-Text; q=0.01",
    ])
    func `a reader that names OpenMetrics gets it`(value: String) throws {
        #expect(try accepts("Accept: \(value)\r\n"))
        #expect(try accepts("accept: text/html\r\nACCEPT: \(value)\r\n"))
    }

    @Test(arguments: [
        "", "*/*", "text/plain", "application/openmetrics-text;q=0",
        "application/openmetrics-text; q=0.000", "application/openmetrics-texts",
        "x-application/openmetrics-text", ",,,",
    ])
    func `all others get what every reader takes`(value: String) throws {
        #expect(try !accepts("Accept: \(value)\r\n"))
        #expect(try !accepts("X-Accept: application/openmetrics-text\r\n"))
    }
}
