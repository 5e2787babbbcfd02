vcl 4.1;

backend next {
    .host = "127.0.0.1";
    .port = "@NEXT@";
    .first_byte_timeout = 10s;
}

# Nothing is stored, and no method is made a tunnel.
sub vcl_recv {
    return (pass);
}
