import Expectations
import Foundation
import KeyStore
import LoopbackKit
import TestSupport
import Testing

@testable import PostgreSQLKeyStore

/// What an operator is told to do next.
@Suite struct HintTests {
    private func fault(_ address: String) -> JournalError? {
        do throws(DatabaseFault) {
            _ = try DatabaseConnection.open(address, until: .now + .seconds(5))
            return nil
        } catch {
            return error.journalError
        }
    }

    @Test func `what the server refuses has a next step`() throws {
        let server = try DatabaseServer.shared.get()
        let place = "host=\(server.folder) dbname=postgres"
        let link = DatabaseLink(PostgreSQLSettings(address: place + " user=portcullis"))
        // The server speaks another language where it has one: the state tells.
        _ = try link.ask([
            DatabaseStatement("CREATE ROLE locked LOGIN PASSWORD 'right'"),
            DatabaseStatement("CREATE ROLE banned LOGIN"),
            DatabaseStatement("CREATE ROLE poor LOGIN"),
            DatabaseStatement("CREATE ROLE many LOGIN CONNECTION LIMIT 0"),
        ])
        let file = server.folder + "/data/pg_hba.conf"
        let rules = try String(contentsOfFile: file, encoding: .utf8)
        let writing = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        let lines = "local all locked scram-sha-256\nlocal all banned reject\n"
        try writing.write(contentsOf: Data((lines + rules).utf8))
        try writing.close()
        _ = try link.ask([DatabaseStatement("SELECT pg_reload_conf()")])
        let secret = server.folder + "/secret"
        try Data("*:*:*:locked:wrong\n".utf8).write(to: URL(fileURLWithPath: secret))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret)
        // The server takes the file over a moment later.
        eventually { fault("\(place) user=banned") != nil }
        let cases: [(address: String, next: String)] = [
            ("\(place) user=locked passfile=\(secret)", "ALTER ROLE"),
            ("\(place) user=locked passfile=/nowhere", "passfile="),
            ("\(place) user=banned", "pg_hba.conf"), ("\(place) user=nobody", "CREATE ROLE"),
            ("\(place) user=many", "max_connections"),
            ("\(place) user=many", "each gateway has 5 connections"),
            ("host=\(server.folder) user=portcullis dbname=nothing", "CREATE DATABASE"),
            ("host=/nowhere user=portcullis", "pg_isready"),
        ]
        for (address, next) in cases {
            let error = fault(address)
            expectEqual(
                error?.next?.contains(next),
                true,
                "\(address): \(String(describing: error))"
            )
            expectEqual(error?.detail.contains("LOCATION"), false)
            expectEqual(error?.detail.contains("wrong"), false)
        }
    }

    @Test func `what is missing in the database has a next step`() throws {
        let server = try DatabaseServer.shared.get()
        let settings = try server.makeStore()
        let link = DatabaseLink(settings)
        func refusal(_ sql: String...) -> JournalError? {
            do throws(JournalError) {
                _ = try link.ask(sql.map { DatabaseStatement($0) })
                return nil
            } catch {
                return error
            }
        }
        expectEqual(refusal("SELECT * FROM nothing")?.next?.contains("store migrate"), true)
        // Without the schema nothing is there for the role at all.
        _ = refusal("CREATE ROLE reader")
        let blind = refusal("SET LOCAL ROLE reader", "SELECT * FROM receipts")
        expectEqual(blind?.next?.contains("GRANT USAGE"), true, "\(String(describing: blind))")
        let schema = try #require(
            settings.address.split(separator: "search_path=").last?.dropLast()
        )
        expectEqual(refusal("GRANT USAGE ON SCHEMA \(schema) TO reader"), nil)
        let poor = refusal("SET LOCAL ROLE reader", "SELECT * FROM keys")
        expectEqual(poor?.next?.contains("GRANT SELECT"), true, "\(String(describing: poor))")
        // The last one: a connection that takes no writes is left, and none is made for a moment.
        let reading = refusal("SET TRANSACTION READ ONLY", "DELETE FROM keys")
        expectEqual(reading?.next?.contains("read-write"), true)
        let empty = try server.makeSchema()
        let missing = #expect(throws: JournalError.self) { try PostgreSQLKeyJournal(empty) }
        let problem = StoreProblem(try #require(missing), "x")
        #expect(problem.hint.contains("store migrate"))
        #expect(StoreProblem(JournalError(.busy, ""), "x").hint.contains("try again"))
    }

    @Test func `a row that no gateway writes has a next step`() throws {
        let settings = try DatabaseServer.shared.get().makeStore()
        let table = try KeyTable(journal: try PostgreSQLKeyJournal(settings))
        table.enrol(.sample(1)) { _ in }
        try table.committer.flush()
        try table.close()
        let link = DatabaseLink(settings)
        _ = try link.ask([DatabaseStatement("UPDATE keys SET public_key = sha512(key_id)")])
        let damaged = #expect(throws: JournalError.self) {
            _ = try KeyTable(journal: try PostgreSQLKeyJournal(settings))
        }
        let problem = StoreProblem(try #require(damaged), "x")
        #expect(problem.detail.contains("point"))
        #expect(problem.hint.contains("pg_amcheck"))
        #expect(!problem.hint.contains("portcullis store restore"))
    }

    @Test(arguments: [
        ("SSL error: certificate verify failed", "sslrootcert="),
        ("root certificate file \"/r/root.crt\" does not exist", "sslrootcert="),
        ("server certificate for \"a\" does not match host name \"b\"", "hostaddr="),
        ("server does not support SSL, but SSL was required", "ssl = on"),
        ("fe_sendauth: no password supplied", "passfile="),
        ("connection to server at \"::1\", port 1 failed: Connection refused", "pg_isready"),
        ("FATAL:  28P01: Passwort-Authentifizierung; LOCATION:  auth_failed, auth.c:3", "ALTER"),
        (
            "connection to server on socket \"/s\" failed: server closed the connection",
            "pg_isready"
        ),
        ("FATAL:  57P03: the database system is starting up", "just been started"),
        ("FATAL:  08P01: unsupported startup parameter in options: a", "ignore_startup_parameters"),
        ("ERROR:  26000: prepared statement \"s1\" does not exist", "session pooling"),
        ("ERROR:  42P05: prepared statement \"s1\" already exists", "session pooling"),
        ("FATAL:  XX000: something else", "doctor"), ("something else", "doctor"),
    ])
    func `words and states have a next step`(message: String, next: String) {
        let error = DatabaseFault.connecting(message).journalError
        expectEqual(error.next?.contains(next), true)
        #expect(!error.detail.contains("LOCATION"))
    }

    @Test func `what one of several servers said is worth more than silence`() {
        let silent = DatabaseFault.unreachable("db1 gave no connection in time", state: nil)
        let wrong = DatabaseFault.connecting("FATAL:  28P01: no")
        let error = DatabaseFault.all([silent, silent, wrong]).journalError
        expectEqual(error.detail, "db1 gave no connection in time; FATAL:  28P01: no")
        expectEqual(error.next?.contains("ALTER ROLE"), true)
        expectEqual(
            DatabaseFault.unreachable("x", state: DatabaseHint.tooOld).journalError.next?
                .contains("PostgreSQL 12"),
            true
        )
    }
}
