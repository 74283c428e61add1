#!lua flags=allow-oom
-- ARGV: class, id, execution, the answer, seconds to keep it, seconds the job took, whether it may be tried anew,
-- bytes of all answers that are kept. The first answer stands, whoever gives it: that of a lease which has lapsed is
-- as good as its repetition, but for one of what stood under this id before. Returns whether this one was it.
--@prelude
local class, id, now = ARGV[1], ARGV[2], now_s()
redis.call('ZREM', started_key(class), id .. ':' .. ARGV[3])
local status = field(id, 'status')
if status == '' or DONE[status] or not is_execution(id, ARGV[3]) then return 0 end
local client, took_s = field(id, 'rk_client'), tonumber(ARGV[6])
if status == 'queued' then out_of_line(class, id, client) end
redis.call('SET', 'rkgrade:answer:' .. id, ARGV[4], 'EX', ARGV[5])
redis.call('HSET', job_key(id), 'status', 'finished', 'ended_at', DATE, 'rk_anew', ARGV[7])
redis.call('HDEL', job_key(id), 'data')
redis.call('EXPIRE', job_key(id), ARGV[5])
redis.call('HSET', PACE, 'mean_s', mean_s() + 0.1 * (took_s - mean_s()))
-- What it really took, in place of what was expected.
if redis.call('ZSCORE', clients_key(class), client) then
  redis.call('ZINCRBY', clients_key(class), took_s - (tonumber(field(id, 'rk_charged')) or 0), client)
end
if (tonumber(field(id, 'rk_keep_s')) or 0) > 0 then
  count_kept(id, #ARGV[4], now + tonumber(ARGV[5]))
  forget_old(id, tonumber(ARGV[8]), now)
end
announce(id)
return 1
