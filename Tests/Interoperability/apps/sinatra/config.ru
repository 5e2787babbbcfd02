# frozen_string_literal: true

# A Sinatra application, with what Sinatra has switched on by itself.
require 'digest'
require 'json'
require 'sinatra/base'

ROUTES = {
  '/' => ['root', nil], '/pay' => ['pay', 'POST'], '/upload' => ['upload', 'POST'],
  '/profile' => ['profile', 'GET'], '/item' => ['item', 'DELETE'],
  '/v1/orders' => ['orders', nil], '/hosted' => ['hosted', 'POST'],
  '/checkin' => ['checkin', 'POST'], '/told' => ['told', 'POST'],
  '/trial' => ['trial', 'POST'], '/open' => ['open', nil]
}.freeze
ALL = %w[GET POST PUT PATCH DELETE OPTIONS HEAD].freeze

# The application; its fields are the variables of Rack.
class Application < Sinatra::Base
  set :show_exceptions, false
  set :logging, false
  set :host_authorization, {} if respond_to?(:host_authorization)

  def write(line)
    File.open(ENV.fetch('INTEROP_LOG'), 'a') { |log| log.syswrite("#{JSON.generate(line)}\n") }
  end

  def lists(text)
    URI.decode_www_form(text.dup.force_encoding('ISO-8859-1')).group_by(&:first)
       .transform_values { |pairs| pairs.map(&:last) }
  rescue ArgumentError
    {}
  end

  def execute(handler)
    seen = { handler: handler, method: request.request_method, path: request.path_info,
             query: lists(request.query_string) }
    write(seen.merge(stage: 'entered'))
    content = %w[POST PUT PATCH].include?(request.request_method) ? request.body.read : ''
    fields = env.select { |name, _| name.start_with?('HTTP_') }
                .transform_keys { |name| name.delete_prefix('HTTP_').tr('_', '-').downcase }
    %w[session app_session].each do |name|
      fields["cookie:#{name}"] = request.cookies[name] if request.cookies.key?(name)
    end
    text = content.dup.force_encoding('ISO-8859-1').encode('UTF-8')
    write(seen.merge(stage: 'executed', form: lists(content), fields: fields,
                     length: content.bytesize, sha256: Digest::SHA256.hexdigest(content),
                     content: text[0, 512]))
    JSON.generate(handler: handler, query: seen[:query])
  end

  ROUTES.each do |path, (handler, method)|
    (method ? [method, *('HEAD' if method == 'GET')] : ALL).each do |verb|
      route(verb, path, {}) { execute(handler) }
    end
  end
  get('/files/*') { |rest| execute(rest.start_with?('private/') ? 'private' : 'files') }
  not_found { execute('none') }
end

run Application
