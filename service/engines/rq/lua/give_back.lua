#!lua flags=allow-oom
-- ARGV: class, id, execution, cause, how often a worker may go over one job. An empty cause: through no fault of the
-- job's, which does not count. Returns 1 where the job was set aside.
--@prelude
local class, id, now = ARGV[1], ARGV[2], now_s()
if redis.call('ZREM', started_key(class), ARGV[2] .. ':' .. ARGV[3]) == 0 then return 0 end
if field(id, 'status') ~= 'started' then return 0 end
if ARGV[4] == '' then
  redis.call('HINCRBY', job_key(id), 'rk_attempts', -1)
  queue_up(class, id, field(id, 'rk_client'), now, true)
  return 0
end
return come_back(class, id, ARGV[4], tonumber(ARGV[5]), now) and 1 or 0
