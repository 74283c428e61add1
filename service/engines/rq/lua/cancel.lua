#!lua flags=allow-oom
-- ARGV: id. Drops a job, so that it may be asked for anew; where it runs, its host stops it at its next beat. Returns
-- what it was.
--@prelude
local id = ARGV[1]
local status = field(id, 'status')
local class = string.match(field(id, 'origin'), '^rkgrade%-(%a+)$')
if status == 'queued' then
  out_of_line(class, id, field(id, 'rk_client'))
elseif status == 'started' then
  redis.call('ZREM', started_key(class), id .. ':' .. last_execution(id))
end
if status == 'queued' or status == 'started' then end_without_result(id, 'canceled', 'cancelled', now_s()) end
return status
