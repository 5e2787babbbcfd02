import Foundation
import LoopbackKit

extension TestCertificate {
    /// What an authority says of a certificate.
    enum Standing { case good, revoked, unknown }

    /// The certificate's number, in hexadecimal.
    func serial() throws -> String {
        let printed = try Self.openssl(["x509", "-in", certificate, "-noout", "-serial"])
        return String(printed.dropFirst("serial=".count)).trimmingCharacters(in: .newlines)
    }

    /// Makes an OCSP response about it, in place of the file. It is its own issuer, and signs
    /// itself, unless others are named. Without `days` the response has no `nextUpdate`.
    func respond(
        _ standing: Standing = .good,
        days: Int? = 3,
        issuer: TestCertificate? = nil,
        responder: TestCertificate? = nil,
        to file: String
    ) throws {
        let issuer = issuer ?? self
        let responder = responder ?? issuer
        // The database of `openssl ca`: state, end, revocation, serial, file, subject.
        let serial = try serial()
        let line =
            switch standing {
            case .good: "V\t491231000000Z\t\t\(serial)\tunknown\t/CN=x\n"
            case .revoked: "R\t491231000000Z\t260101000000Z\t\(serial)\tunknown\t/CN=x\n"
            case .unknown: ""
            }
        try line.write(toFile: file + ".index", atomically: true, encoding: .utf8)
        try Self.openssl(
            ["ocsp", "-noverify", "-index", file + ".index"]
                + (days.map { ["-ndays", String($0)] } ?? [])
                + ["-CA", issuer.certificate, "-issuer", issuer.certificate, "-cert", certificate]
                + ["-rsigner", responder.certificate, "-rkey", responder.key]
                + ["-respout", file + ".new"]
        )
        guard rename(file + ".new", file) == 0 else {
            throw ChildProcess.Failure(description: "no rename to \(file)")
        }
    }
}
