#!lua flags=no-writes
-- ARGV: 'hosts' or 'apis', then names. Returns those of them that have been heard of.
--@prelude
local registry, now, alive = ARGV[1] == 'hosts' and HOSTS or APIS, now_s(), {}
for n = 2, #ARGV do
  if tonumber(redis.call('ZSCORE', registry, ARGV[n]) or '0') > now then alive[#alive + 1] = ARGV[n] end
end
return alive
