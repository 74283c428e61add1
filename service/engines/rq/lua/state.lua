#!lua flags=allow-oom
-- ARGV: the API that asks. What is to be known of it all: workers alive, jobs running, jobs waiting, those of them
-- that the queue's limit is for, bytes of the requests in line, age of the oldest in s, seconds a job takes, what each
-- live host offers.
--@prelude
local now, queued, oldest_s, offers = now_s(), 0, 0, {}
heard_of(ARGV[1], now)
for _, class in ipairs(CLASSES) do
  queued = queued + redis.call('LLEN', queue_key(class))
  local first = redis.call('LINDEX', queue_key(class), 0)
  if first then oldest_s = math.max(oldest_s, now - (tonumber(field(first, 'rk_queued')) or now)) end
end
for _, host in ipairs(redis.call('ZRANGEBYSCORE', HOSTS, stamp(now), '+inf')) do
  offers[#offers + 1] = redis.call('GET', 'rkgrade:host:' .. host) or ''
end
return {workers_alive(now), running(), queued, unadmitted(now), line_bytes(), stamp(oldest_s), stamp(mean_s()), offers}
