-- Counts what a script costs and stops it: steps and time by a count hook, memory by what
-- the allocator refuses. A limit is an error no script can catch: every function that
-- catches errors is replaced below by one that throws a limit again.

local box = ...

local error, type, unpack = error, type, unpack
local pcall, xpcall = pcall, xpcall
local clock, collectgarbage = os.clock, collectgarbage
local sethook, getinfo = debug.sethook, debug.getinfo
local create, resume = coroutine.create, coroutine.resume
local find, sub = string.find, string.sub

-- The hook runs after so many instructions. A few instructions may take long (joining two
-- huge strings, say): when they did, the hook comes oftener until they are short again.
local LOOSE, TIGHT = 100, 4
local LONG, SHORT = 0.002, 0.00005

local LIMIT = {}
local NO_MEMORY = "not enough memory"
local SCRIPT = "=script"

local steps, max_steps, look_at, last_look
local tripped, line
local sprouted

local function script_line(level)
  for above = level, level + 250 do
    local info = getinfo(above, "Sl")
    if not info then
      return nil
    end
    if info.source == SCRIPT then
      return info.currentline
    end
  end
end

local function trip(kind)
  if not tripped then
    tripped, line = kind, script_line(3)
  end
  error(LIMIT, 0)
end

-- os.clock is the processor time of all threads, never less than that of this one: the
-- exact clock, which costs a call into the host, is only asked when this one says so.
local function look()
  local now = clock()
  if now >= look_at then
    local left = box.time_left()
    if left <= 0 then
      trip("time")
    end
    look_at = now + left
  end
  local taken = now - last_look
  last_look = now
  return taken
end

local function count(passed)
  steps = steps + passed
  if steps > max_steps then
    trip("steps")
  end
  return look()
end

local tight

local function loose()
  if count(LOOSE) > LONG then
    sethook(tight, "", TIGHT)
  end
end

function tight()
  if count(TIGHT) < SHORT then
    sethook(loose, "", LOOSE)
  end
end

-- For work done in C, which no hook can interrupt: looks at the clock before more of it.
local function charge(work)
  if work > 65536 then
    look()
  end
end

local function start(allowed_steps, allowed_seconds)
  steps, max_steps = 0, allowed_steps
  last_look = clock()
  look_at = last_look + allowed_seconds
  tripped, line, sprouted = nil, nil, false
  sethook(loose, "", LOOSE)
end

local function tidy(message)
  if type(message) == "string" and find(message, "^%[box%]:%d+: ") then
    local _, last = find(message, "^%[box%]:%d+: ")
    return sub(message, last + 1)
  end
  return message
end

-- Runs where the error happened, when nothing in the script caught it. Only box code may run
-- here: Lua 5.1 calls no hook while it handles an error that a hook threw. The meter stops
-- first, for a limit met from here on would be thrown past everything that could catch it.
local function locate(message)
  sethook()
  line = line or script_line(2)
  if type(message) ~= "string" or not find(message, "^%[box%]:%d+: ") then
    return message
  end
  return (line and "script:" .. line .. ": " or "") .. tidy(message)
end

local function too_deep(message)
  return find(message, "^stack overflow")
    or find(message, "^script:%d+: stack overflow")
    or find(message, "C stack overflow", 1, true)
    or message == "error in error handling"
end

-- Runs work under the meter. Returns whether threads were made, then true and the result, or
-- false, what kind of failure, its message and its line.
local function guarded(allowed_steps, allowed_seconds, work)
  local ok, result = xpcall(function()
    start(allowed_steps, allowed_seconds)
    local result = work()
    sethook()
    return result
  end, locate)
  if ok then
    return sprouted, true, result
  end
  if tripped then
    return true, false, "limit", tripped, line
  end
  if result == NO_MEMORY then
    return true, false, "limit", "memory", line
  end
  if type(result) == "string" and too_deep(result) then
    return true, false, "limit", "depth", line
  end
  return sprouted, false, "error", result, line
end

local function settle(ok, ...)
  if ok then
    return true, ...
  end
  local message = ...
  if tripped or message == LIMIT then
    error(LIMIT, 0)
  end
  if message == NO_MEMORY then
    trip("memory")
  end
  return false, tidy(message)
end

local safe = {}

function safe.pcall(f, ...)
  return settle(pcall(f, ...))
end

function safe.xpcall(f, handler)
  local result = { settle(pcall(f)) }
  if result[1] then
    return unpack(result)
  end
  return false, handler(result[2])
end

local function grow(f)
  local thread = create(f)
  sethook(thread, loose, "", LOOSE)
  sprouted = true
  return thread
end

local function continue(thread, ...)
  return settle(resume(thread, ...))
end

local function relay(ok, ...)
  if not ok then
    error((...), 0)
  end
  return ...
end

safe.coroutine = {
  create = grow,
  resume = continue,
  running = coroutine.running,
  status = coroutine.status,
  yield = coroutine.yield,
  wrap = function(f)
    local thread = grow(f)
    return function(...)
      return relay(continue(thread, ...))
    end
  end,
}

box.meter = {
  look = look,
  charge = charge,
  trip = trip,
  guarded = guarded,
  safe = safe,
}
