-- The standard library as scripts see it: what reaches outside is gone, and what C would do
-- for very long in one call is bounded, split up, or done in Lua under the meter.

local box = ...

local meter = box.meter
local charge, look, trip = meter.charge, meter.look, meter.trip
local error, type, tostring, tonumber, select = error, type, tostring, tonumber, select
local ipairs, unpack, getmetatable, newproxy = ipairs, unpack, getmetatable, newproxy
local floor, max, min = math.floor, math.max, math.min
local string, table = string, table
local sub, find, gmatch, match = string.sub, string.find, string.gmatch, string.match
local time, date, clock = os.time, os.date, os.clock
local getinfo = debug.getinfo

-- What one call into C may cost: some tens of milliseconds in the worst case.
local AFFORDABLE = 1e7
local LONGEST_PATTERN = 256
local SET_PER_COST = 16
local MOST_UNPACKED = 7000

-- A number in the fewest digits that read back as it, parted: its first digit, those behind the
-- point, and the exponent.
local function shortest(n)
  local written
  for digits = 14, 16 do
    written = string.format("%." .. digits .. "e", n)
    if tonumber(written) == n then
      break
    end
  end
  local first, rest, mark, exponent = match(written, "^(-?%d)%.(%d-)0*e([+-])(%d+)$")
  return first, rest, mark, tonumber(mark .. exponent), exponent
end

-- A number as gopher-lua writes it, which is as Go does: Lua itself keeps 14 digits.
local function number_text(n)
  if n == floor(n) and n >= -2 ^ 63 and n < 2 ^ 63 then
    return string.format("%.0f", n + 0)
  elseif n ~= n then
    return "NaN"
  elseif n == 1 / 0 or n == -1 / 0 then
    return n > 0 and "+Inf" or "-Inf"
  end
  local first, rest, mark, exponent, written = shortest(n)
  if exponent < -4 or exponent >= 6 then
    return first .. (rest ~= "" and "." or "") .. rest .. "e" .. mark .. written
  elseif exponent < 0 then
    local sign, digit = match(first, "^(-?)(%d)$")
    return sign .. "0." .. string.rep("0", -exponent - 1) .. digit .. rest
  end
  return first .. sub(rest, 1, exponent) .. "." .. sub(rest, exponent + 1)
end

local function text(value)
  return type(value) == "number" and number_text(value) or value
end

local function base_tostring(...)
  local value = ...
  return type(value) == "number" and number_text(value) or tostring(...)
end

local strings = {}

local function weighed(s)
  s = text(s)
  if type(s) == "string" then
    charge(#s)
  end
  return s
end

-- Written out, each calling its own by name: C words its errors by the name it was called by.
function strings.byte(s, ...)
  return string.byte(weighed(s), ...)
end

-- As in gopher-lua, `%s` takes any value.
function strings.format(s, ...)
  s = weighed(s)
  if type(s) ~= "string" or not find(s, "%%[^%a%%]*s") then
    return string.format(s, ...)
  end
  local values, count, at = { ... }, select("#", ...), 0
  for verb in gmatch(s, "%%[^%a%%]*(.)") do
    at = verb == "%" and at or at + 1
    if verb == "s" and at <= count then
      values[at] = base_tostring(values[at])
    end
  end
  return string.format(s, unpack(values, 1, count))
end

function strings.lower(s, ...)
  return string.lower(weighed(s), ...)
end

function strings.reverse(s, ...)
  return string.reverse(weighed(s), ...)
end

function strings.sub(s, ...)
  return string.sub(weighed(s), ...)
end

function strings.upper(s, ...)
  return string.upper(weighed(s), ...)
end

function strings.len(s, ...)
  return string.len(text(s), ...)
end

strings.char = string.char

local weights, kept = {}, 0

-- The worst that backtracking can cost is length ^ power * factor; a set is gone through for each
-- character that is compared with it.
local function weigh(pattern)
  local bare = string.gsub(string.gsub(pattern, "%%[^b%d]", "c"), "%[%^?.[^%]]*%]", "c")
  local _, repeats = string.gsub(bare, "[%*%+%-]", "")
  local _, jumps = string.gsub(bare, "%%", "")
  local _, options = string.gsub(bare, "%?", "")
  local starts = sub(pattern, 1, 1) == "^" and 0 or 1
  local width = find(pattern, "[", 1, true) and max(1, #pattern / SET_PER_COST) or 1
  local weight = { power = max(1, repeats + jumps + starts), factor = 2 ^ options * width }
  if kept >= 200 then
    weights, kept = {}, 0
  end
  weights[pattern], kept = weight, kept + 1
  return weight
end

local function is_cheap(subject, pattern)
  if #pattern > LONGEST_PATTERN then
    return false
  end
  local weight = weights[pattern] or weigh(pattern)
  local cost = (#subject + 1) ^ weight.power * weight.factor
  if cost > AFFORDABLE then
    return false
  end
  charge(cost)
  return true
end

local function are_text(subject, pattern)
  return type(subject) == "string" and type(pattern) == "string"
end

local function start_of(subject, init)
  init = tonumber(init) or 1
  if init < 0 then
    init = #subject + init + 1
  end
  return floor(min(max(1, init), #subject + 1))
end

local function find_plain(subject, wanted, init)
  local at = start_of(subject, init)
  if #wanted == 0 or #subject * #wanted <= AFFORDABLE then
    charge(#subject * #wanted)
    return find(subject, wanted, init, true)
  end
  local window = max(1, floor(AFFORDABLE / #wanted))
  while at + #wanted - 1 <= #subject do
    look()
    local first = find(sub(subject, at, at + window + #wanted - 2), wanted, 1, true)
    if first then
      return at + first - 1, at + first + #wanted - 2
    end
    at = at + window
  end
  return nil
end

function strings.find(subject, pattern, init, plain)
  subject, pattern = text(subject), text(pattern)
  if not are_text(subject, pattern) then
    return find(subject, pattern, init, plain)
  end
  if plain or not find(pattern, "[%^%$%*%+%?%.%(%[%%%-]") then
    return find_plain(subject, pattern, init)
  end
  if is_cheap(subject, pattern) then
    return find(subject, pattern, init)
  end
  local match = box.pattern(pattern)
  local first, stop = match:search(subject, start_of(subject, init))
  if first then
    return first, stop - 1, unpack(match:captures(first, stop, false))
  end
  return nil
end

function strings.match(subject, pattern, init)
  subject, pattern = text(subject), text(pattern)
  if not are_text(subject, pattern) or is_cheap(subject, pattern) then
    return string.match(subject, pattern, init)
  end
  local match = box.pattern(pattern)
  local first, stop = match:search(subject, start_of(subject, init))
  if first then
    return unpack(match:captures(first, stop, true))
  end
  return nil
end

function strings.gmatch(subject, pattern)
  subject, pattern = text(subject), text(pattern)
  if not are_text(subject, pattern) or is_cheap(subject, pattern) then
    return string.gmatch(subject, pattern)
  end
  local match, at = box.pattern(pattern, true), 1
  return function()
    local first, stop = match:search(subject, at)
    if first then
      at = stop == first and stop + 1 or stop
      return unpack(match:captures(first, stop, true))
    end
    at = #subject + 2
  end
end
strings.gfind = strings.gmatch

local function fill(match, template, first, stop)
  local out, at = {}, 1
  while true do
    local mark = find(template, "%", at, true)
    out[#out + 1] = sub(template, at, (mark or 0) - 1)
    if not mark then
      return table.concat(out)
    end
    local c = sub(template, mark + 1, mark + 1)
    out[#out + 1] = find(c, "%d") and tostring(match:capture(tonumber(c), first, stop)) or c
    at = mark + 2
  end
end

local function replace(match, value, first, stop)
  local whole = match:capture(0, first, stop)
  local kind, result = type(value), nil
  if kind == "string" then
    return fill(match, value, first, stop)
  elseif kind == "table" then
    result = value[match:capture(1, first, stop)]
  else
    result = value(unpack(match:captures(first, stop, true)))
  end
  if not result then
    return whole
  end
  if type(result) ~= "string" and type(result) ~= "number" then
    error("invalid replacement value (a " .. type(result) .. ")", 0)
  end
  return text(result)
end

local function gsub_slowly(subject, pattern, value, most)
  local match, out, at, count = box.pattern(pattern), {}, 1, 0
  while count < most do
    local stop = match:at(subject, at)
    if stop then
      count = count + 1
      out[#out + 1] = replace(match, value, at, stop)
    end
    if stop and stop > at then
      at = stop
    elseif at <= #subject then
      out[#out + 1] = sub(subject, at, at)
      at = at + 1
    else
      break
    end
    if match.anchored then
      break
    end
  end
  out[#out + 1] = sub(subject, at)
  return table.concat(out), count
end

local REPLACES = { string = true, table = true, ["function"] = true }

function strings.gsub(subject, pattern, value, most)
  subject, pattern, value = text(subject), text(pattern), text(value)
  if not are_text(subject, pattern) or not REPLACES[type(value)] then
    return string.gsub(subject, pattern, value, most)
  end
  if is_cheap(subject, pattern) then
    return string.gsub(subject, pattern, value, most)
  end
  return gsub_slowly(subject, pattern, value, most == nil and #subject + 1 or tonumber(most))
end

function strings.rep(s, n)
  s, n = text(s), tonumber(n)
  if type(s) ~= "string" or not n or s == "" or n < 1 then
    return string.rep(s, n and 0)
  end
  if #s * n > box.memory then
    trip("memory")
  end
  charge(#s * n)
  return string.rep(s, n)
end

local tables = {}
for name, f in pairs(table) do
  tables[name] = f
end

function tables.insert(t, ...)
  if select("#", ...) == 2 then
    local at = tonumber((...))
    if at and not (at >= 0 and at <= 1e9) then
      error("bad argument #2 to 'insert' (position out of bounds)", 2)
    end
  end
  return table.insert(t, ...)
end

-- The meter counts what Lua does alone, so a function of C is called by one of Lua.
function tables.sort(t, before)
  if before == nil then
    before = function(a, b)
      return a < b
    end
  elseif type(before) == "function" and getinfo(before, "S").what == "C" then
    local compare = before
    before = function(a, b)
      return compare(a, b)
    end
  end
  return table.sort(t, before)
end

local function with_texts(t)
  for index = 1, #t do
    if type(t[index]) == "number" then
      local texts = {}
      for each = 1, #t do
        texts[each] = text(t[each])
      end
      return texts
    end
  end
  return t
end

function tables.concat(t, ...)
  if type(t) == "table" then
    charge(#t * 64)
    t = with_texts(t)
  end
  return table.concat(t, ...)
end

local function few(t, first, last)
  if type(t) == "table" then
    local from, to = tonumber(first) or 1, tonumber(last) or #t
    if not (to - from < MOST_UNPACKED) then
      error("too many results to unpack", 2)
    end
  end
  return unpack(t, first, last)
end

local maths = {}
for name, f in pairs(math) do
  maths[name] = f
end

local base = { unpack = few, pcall = meter.safe.pcall, xpcall = meter.safe.xpcall }
for _, name in ipairs({
  "_VERSION", "assert", "error", "getmetatable", "ipairs", "next", "pairs", "rawequal",
  "rawget", "rawset", "select", "setmetatable", "tonumber", "tostring", "type",
}) do
  base[name] = _G[name]
end

base.tostring = base_tostring

-- A script may print; nobody listens.
function base.print() end

-- The time and nothing else of the system; in UTC, so that a script says the same everywhere.
local system = { clock = clock, difftime = os.difftime }

function system.date(format, at)
  format = format == nil and "%c" or weighed(format)
  if type(format) == "string" and sub(format, 1, 1) ~= "!" then
    format = "!" .. format
  end
  return date(format, at == nil and time() or at)
end

-- Days from 1970-01-01; a year is taken to begin in March, so that a leap day is its last.
local function days(year, month, day)
  year = year + floor((month - 1) / 12)
  month = (month - 1) % 12 + 1
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  local leaps = floor(year / 4) - floor(year / 100) + floor(year / 400)
  return 365 * year + leaps + floor((153 * (month - 3) + 2) / 5) + day - 719469
end

function system.time(at)
  if at == nil then
    return time()
  elseif type(at) ~= "table" then
    error("bad argument #1 to 'time' (table expected, got " .. type(at) .. ")", 2)
  end
  local function field(name, missing)
    local value = tonumber(at[name]) or missing
    return value and floor(value) or error("field '" .. name .. "' missing in date table", 3)
  end
  local day = days(field("year"), field("month"), field("day"))
  return day * 86400 + field("hour", 12) * 3600 + field("min", 0) * 60 + field("sec", 0)
end

-- What `a .. b` is compiled to is `a .. box.joint .. b`, which Lua joins from the right: numbers
-- reach us before Lua writes them. Nothing of a script runs between the two calls. Scripts can get
-- hold of both, which are the same for all: they are no tables, in which one could leave something.
local joint, waiting = newproxy(true), newproxy(true)
local behind

local function joined(value)
  local kind = type(value)
  if kind == "number" then
    -- Up to 14 digits Lua writes the same, and sooner.
    return value % 1 == 0 and value < 1e14 and value > -1e14 and value + 0 or number_text(value)
  end
  return kind == "string" and value
end

getmetatable(joint).__concat = function(_, right)
  behind = right
  return waiting
end

getmetatable(waiting).__concat = function(left)
  local a, b = joined(left), joined(behind)
  if a and b then
    return a .. b
  end
  local wrong = behind
  if not a then
    wrong = left
  end
  error("attempt to concatenate a " .. type(wrong) .. " value", 2)
end

getmetatable(joint).__metatable, getmetatable(waiting).__metatable = false, false
box.joint = joint

box.library = {
  base = base,
  string = strings,
  table = tables,
  math = maths,
  coroutine = meter.safe.coroutine,
  os = system,
}
