#!lua flags=allow-oom
-- Gives the memory of all results that are kept back to the queue. Returns how many there were.
local dropped = 0
while true do
  local members = redis.call('ZPOPMIN', 'rkgrade:verdicts', 1000)
  if #members == 0 then break end
  for n = 1, #members, 2 do
    redis.call('UNLINK', 'rkgrade:verdict:' .. string.match(members[n], '^(.*):%d+$'))
    dropped = dropped + 1
  end
end
redis.call('DEL', 'rkgrade:verdicts:bytes')
return dropped
