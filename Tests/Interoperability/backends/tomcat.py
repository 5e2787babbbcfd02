"""Tomcat, which removes parameters of segments before it looks for a servlet."""
import os
import shutil

from backends.backend import APPS, Backend, find, version_of

HOME = "/usr/share/tomcat10"


class Tomcat(Backend):
    name = "Tomcat"
    reads_cookies = False

    def version(self):
        jar = os.path.join(HOME, "lib", "catalina.jar")
        if not find("java") or not os.path.exists(jar):
            return None
        return version_of("java", "-cp", jar, "org.apache.catalina.util.ServerInfo")

    def commands(self, port, folder):
        app = os.path.join(folder, "webapps", "ROOT", "WEB-INF")
        os.makedirs(app)
        for name in ["conf", "temp", "logs", "work"]:
            os.mkdir(os.path.join(folder, name))
        for name in ["app.jsp", "web.xml"]:
            shutil.copy(os.path.join(APPS, "tomcat", name), app)
        for name in ["web.xml", "catalina.properties"]:
            shutil.copy(os.path.join(HOME, "etc", name), os.path.join(folder, "conf"))
        with open(os.path.join(folder, "conf", "server.xml"), "w", encoding="utf-8") as file:
            file.write(
                "<Server port=\"-1\"><Service name=\"interop\">\n"
                f"<Connector port=\"{port}\" address=\"127.0.0.1\" maxThreads=\"16\""
                " encodedSolidusHandling=\"decode\" connectionTimeout=\"10000\"/>\n"
                "<Engine name=\"interop\" defaultHost=\"localhost\"><Host name=\"localhost\""
                " appBase=\"webapps\" autoDeploy=\"false\"/></Engine>\n</Service></Server>\n"
            )
        jars = [f"{HOME}/bin/bootstrap.jar", f"{HOME}/bin/tomcat-juli.jar"]
        yield ["java", "-Xmx128m", "-XX:+UseSerialGC", f"-Dcatalina.home={HOME}",
               f"-Dcatalina.base={folder}", f"-Djava.io.tmpdir={folder}/temp",
               "-cp", ":".join(jars), "org.apache.catalina.startup.Bootstrap", "start"]
