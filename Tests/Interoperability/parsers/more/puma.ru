# Writes what Puma parsed to the log, as backends.py does.
require "digest"
require "json"

LOG = File.open(ENV.fetch("INTEROP_LOG"), "a")
LOG.sync = true

run lambda { |env|
  # Where the content is: a text in Latin-1, as JSON can carry any byte so.
  text = ->(value) { value.dup.force_encoding("ISO-8859-1").encode("UTF-8") }
  body = env["rack.input"].read
  fields = env.select { |name, _| name.start_with?("HTTP_") || name == "CONTENT_TYPE" }
  # Puma names the version of the request as if it were a field, since Rack has no other name for it.
  fields.delete("HTTP_VERSION") if env["HTTP_VERSION"] == env["SERVER_PROTOCOL"]
  line = JSON.generate(
    "method" => env["REQUEST_METHOD"], "target" => text.(env["REQUEST_URI"]),
    "fields" => fields.map { |name, value| [name, text.(value)] }, "length" => body.bytesize,
    "sha256" => Digest::SHA256.hexdigest(body), "how" => "cgi"
  ) + "\n"
  LOG.write(line)
  [200, { "Content-Length" => line.bytesize.to_s }, [line]]
}
