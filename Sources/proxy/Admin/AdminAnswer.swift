import HTTPWire

/// A response of the operators' server.
struct AdminAnswer {
    private let status: Int
    private let contentType: StaticString
    /// Fields in addition to those every answer has.
    private var fields: [(name: StaticString, value: String)] = []
    private let body: [UInt8]

    private init(status: Int, _ contentType: StaticString, _ body: [UInt8]) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }

    /// That the process runs, which needs no snapshot.
    static var health: AdminAnswer { text("ok\n") }

    private static func text(_ text: String) -> AdminAnswer {
        AdminAnswer(status: 200, "text/plain; charset=utf-8", Array(text.utf8))
    }

    /// A page.
    init(_ page: AdminPage, _ snapshot: AdminSnapshot) {
        switch page {
        case .metrics:
            self.init(
                status: 200,
                "text/plain; version=0.0.4; charset=utf-8",
                Array(snapshot.metrics.utf8)
            )
        case .status: self.init(status: 200, "application/json", snapshot.status)
        case .health: self = .health
        case .readiness:
            let problems = snapshot.unreadiness
            if let first = problems.first {
                self.init(first, all: problems)
            } else {
                self = Self.text("ready\n")
            }
        }
    }

    /// A problem document (RFC 9457). Where several are told, `all` has them in their order, and
    /// the first decides the status.
    init(_ problem: AdminProblem, all: [AdminProblem] = []) {
        let row = problem.row
        self.init(status: row.status, row.summary, problem.rawValue) { out in
            if problem == .pageUnknown {
                out.array("pages") { out in
                    for page in AdminPage.allCases { out.element(page.rawValue) }
                }
            }
            if !all.isEmpty {
                out.array("reasons") { out in for each in all { out.element(each.rawValue) } }
            }
        }
        // RFC 9110 §15.5.6: a 405 lists what is allowed.
        if problem == .methodRefused { fields.append(("Allow", "GET, HEAD")) }
        // RFC 9110 §15.6.4.
        if row.status == 503 { fields.append(("Retry-After", "1")) }
    }

    /// The answer to what is no request.
    init(_ malformed: Malformed) {
        let reason = malformed.reason
        self.init(status: reason.status, "\(reason.summary)", reason.rawValue) { _ in }
    }

    private init(
        status: Int,
        _ title: String,
        _ reason: String,
        _ more: (inout JSONWriter) -> Void
    ) {
        var out = JSONWriter()
        out.object { out in
            out.member("type", "about:blank")
            out.member("title", title)
            out.member("status", status)
            out.member("reason", reason)
            more(&out)
        }
        self.init(status: status, "application/problem+json", out.finished)
    }

    /// Head and content; for HEAD the head alone, which speaks of the content all the same (RFC
    /// 9110 §9.3.2).
    func octets(
        date: [UInt8],
        connection: HeadWriter.ConnectionField,
        isHead: Bool
    ) -> [UInt8] {
        var out: [UInt8] = []
        HeadWriter.beginLocalResponse(
            status: status,
            date: date,
            framing: .length(UInt64(body.count)),
            connection: connection,
            into: &out
        )
        HeadWriter.field("Content-Type", contentType, into: &out)
        HeadWriter.field("Cache-Control", "no-store", into: &out)
        HeadWriter.field("X-Content-Type-Options", "nosniff", into: &out)
        for (name, value) in fields { HeadWriter.field(name, Array(value.utf8), into: &out) }
        HeadWriter.endHead(into: &out)
        if !isHead { out.append(contentsOf: body) }
        return out
    }
}
