import Foundation
import LoopbackKit

extension Scenario {
    /// Starts nginx in one process that says on standard error what it does.
    ///
    /// - `name`: of its files.
    /// - `http`: what its `http` block has beside the folders for content.
    func startNginx(_ nginx: String, _ name: String, http: String) throws -> ChildProcess {
        try write(
            name + ".conf",
            """
            daemon off;
            master_process off;
            pid \(name).pid;
            error_log stderr notice;
            events { worker_connections 256; }
            http {
                client_body_temp_path body;
                proxy_temp_path proxy;
                fastcgi_temp_path fastcgi;
                uwsgi_temp_path uwsgi;
                scgi_temp_path scgi;
            \(http)
            }

            """
        )
        return try start(nginx, ["-p", folder.path, "-c", name + ".conf", "-e", "stderr"])
    }
}
