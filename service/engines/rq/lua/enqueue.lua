#!lua
-- ARGV: class, id, client, most that may wait or -1, how many more of clients of whom nothing waits, deadline in s or
-- '', bytes that requests in line may take, bytes of all that is kept of ended ones, then fields and values of the
-- job's hash. Not allowed where memory has run out: what is refused is lost to nobody.
--@prelude
local class, id, client = ARGV[1], ARGV[2], ARGV[3]
local job, now = job_key(id), now_s()
local status = field(id, 'status')
-- What has ended without a result, or in a fault of the grader's, may be tried again under its id.
local over = status == '' or status == 'failed' or status == 'canceled'
if not over and not (status == 'finished' and field(id, 'rk_anew') == '1') then
  return {'known', field(id, 'rk_print')}
end
local most = tonumber(ARGV[4])
if most >= 0 then
  local function full(bytes)
    return {'full', tostring(limited()), tostring(workers_alive(now)), tostring(mean_s()), tostring(bytes)}
  end
  local held = redis.call('LLEN', turns_key('grade', client)) + redis.call('LLEN', turns_key('async', client))
  if unadmitted(now) >= most + (held == 0 and tonumber(ARGV[5]) or 0) then return full(0) end
  local size = 0
  for n = 9, #ARGV, 2 do
    if ARGV[n] == 'data' then size = #ARGV[n + 1] end
  end
  local bytes = line_bytes()
  if bytes > 0 and bytes + size > tonumber(ARGV[7]) then return full(bytes) end
end
forget(id)
forget_old(id, tonumber(ARGV[8]), now)
redis.call('ZREM', failed_key(class), id)
redis.call('HSET', job, unpack(ARGV, 9))
redis.call('HSET', job, 'rk_client', client, 'rk_attempts', '0')
local api = field(id, 'rk_api')
if api ~= '' then heard_of(api, now) end
if ARGV[6] ~= '' then redis.call('HSET', job, 'rk_deadline', stamp(now + tonumber(ARGV[6]))) end
-- Long after anyone could still want it.
redis.call('EXPIRE', job, 7 * 86400)
queue_up(class, id, client, now, false)
return {'queued'}
