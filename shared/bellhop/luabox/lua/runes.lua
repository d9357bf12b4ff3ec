-- Module "runes": characters by code point, under the names Sveltos gives them. What a
-- character is (letter, digit, upper case …) is known for ASCII; beyond it the question is an
-- error, for a wrong answer would be worse than none.

local box = ...

local S = box.library.string
local byte, sub, char, gmatch = S.byte, S.sub, S.char, S.gmatch
local error, ipairs, pairs, select, type = error, ipairs, pairs, select, type
local concat = table.concat
local utf8_of, want = box.utf8_of, box.want
local REPLACEMENT = 0xFFFD

local function is_valid(code)
  return code >= 0 and code <= 0x10FFFF and not (code >= 0xD800 and code <= 0xDFFF)
end

local function text_of(code)
  return utf8_of(is_valid(code) and code or REPLACEMENT)
end

local function size_at(s, at)
  local a = byte(s, at)
  local size = a < 0x80 and 1 or (a >= 0xC2 and a < 0xE0 and 2) or (a >= 0xE0 and a < 0xF0 and 3)
    or (a >= 0xF0 and a < 0xF5 and 4)
  if not size or at + size - 1 > #s then
    return nil
  end
  for next_at = at + 1, at + size - 1 do
    local b = byte(s, next_at)
    if b < 0x80 or b > 0xBF then
      return nil
    end
  end
  return size
end

-- The code point at a byte and how many bytes it takes; U+FFFD and 1 where UTF-8 is invalid.
local function decode(s, at)
  local size = size_at(s, at)
  if size then
    local code = box.code_of(sub(s, at, at + size - 1))
    if is_valid(code) and text_of(code) == sub(s, at, at + size - 1) then
      return code, size, true
    end
  end
  return REPLACEMENT, 1, false
end

local function codes_of(s)
  local codes, at, valid = {}, 1, true
  while at <= #s do
    local code, size, good = decode(s, at)
    codes[#codes + 1], at, valid = code, at + size, valid and good
  end
  return codes, valid
end

local function text_between(codes, first, last)
  local out = {}
  for index = first, last do
    out[#out + 1] = text_of(codes[index])
  end
  return concat(out)
end

local function bytes_of(list)
  local out = {}
  for _, value in ipairs(list) do
    out[#out + 1] = type(value) == "number" and char(value % 256) or nil
  end
  return concat(out)
end

local function list_bytes(s)
  local out = {}
  for at = 1, #s do
    out[at] = byte(s, at)
  end
  return out
end

local function index_of(s, wanted, from)
  local codes = codes_of(s)
  for at = from and from > 1 and from or 1, #codes do
    if codes[at] == wanted then
      return at
    end
  end
end

local function split(s, separator)
  local codes, out, first = codes_of(s), {}, 1
  for at, code in ipairs(codes) do
    if code == separator then
      out[#out + 1] = text_between(codes, first, at - 1)
      first = at + 1
    end
  end
  out[#out + 1] = text_between(codes, first, #codes)
  return out
end

-- The end is exclusive, as in Sveltos; a negative end means the rest.
local function range(s, first, stop)
  local codes = codes_of(s)
  stop = (not stop or stop < 0) and #codes + 1 or stop
  return text_between(codes, first and first > 1 and first or 1, stop - 1 < #codes and stop - 1 or #codes)
end

local function reverse(s)
  local out = {}
  local codes = codes_of(s)
  for at = #codes, 1, -1 do
    out[#out + 1] = text_of(codes[at])
  end
  return concat(out)
end

local function at_byte(s, at)
  if at < 1 or at > #s then
    return nil
  end
  local code = decode(s, at)
  return code ~= REPLACEMENT and code or nil
end

local function to_bytes(list)
  local out = {}
  for _, code in ipairs(list) do
    out[#out + 1] = type(code) == "number" and text_of(code) or nil
  end
  return list_bytes(concat(out))
end

local function string_of(...)
  local out = {}
  for index = 1, select("#", ...) do
    out[index] = text_of((select(index, ...)))
  end
  return concat(out)
end

local function first_code(list)
  local text = bytes_of(list)
  return text ~= "" and at_byte(text, 1) or nil
end

local runes = {
  bytestorune = want("bytestorune", { "table" }, first_code),
  bytetostring = want("bytetostring", { "table" }, bytes_of),
  containsrune = want("containsrune", { "string", "number" }, function(s, code)
    return index_of(s, code) ~= nil
  end),
  isinrange = want("isinrange", { "number", "number", "number" }, function(code, low, high)
    return code >= low and code <= high
  end),
  isvalidutf8 = want("isvalidutf8", { "string" }, function(s)
    return select(2, codes_of(s))
  end),
  reverserunes = want("reverserunes", { "string" }, reverse),
  runeat = want("runeat", { "string", "number" }, at_byte),
  runecount = want("runecount", { "string" }, function(s)
    return #codes_of(s)
  end),
  runeindex = want("runeindex", { "string", "number" }, index_of),
  runerange = want("runerange", { "string" }, range),
  runeslice = want("runeslice", { "string" }, function(s)
    return (codes_of(s))
  end),
  runesplit = want("runesplit", { "string", "number" }, split),
  runestring = string_of,
  runetobytes = want("runetobytes", { "table" }, to_bytes),
  runewidth = want("runewidth", { "number" }, function(code)
    return is_valid(code) and #utf8_of(code) or nil
  end),
  stringtobytes = want("stringtobytes", { "string" }, list_bytes),
  validrune = want("validrune", { "number" }, is_valid),
}

local function ascii(name, f)
  runes[name] = want(name, { "number" }, function(code)
    if code < 0 or code > 127 then
      error("runes." .. name .. " knows ASCII only, not code point " .. code, 3)
    end
    return f(char(code))
  end)
end

local CLASSES = {
  iscontrol = "%c", isdigit = "%d", isnumber = "%d", isletter = "%a", islower = "%l",
  isupper = "%u", isgraphic = "[ -~]", isprint = "[ -~]", isspace = "[\t-\r ]",
  ispunct = "[!-#%%-%*,-/:;%?@%[-%]_{}]", issymbol = "[%$%+<=>%^`|~]",
}

for name, class in pairs(CLASSES) do
  ascii(name, function(c)
    return S.find(c, class) ~= nil
  end)
end

for _, name in ipairs({ "ismark", "istitle" }) do
  ascii(name, function()
    return false
  end)
end

for name, change in pairs({ tolower = S.lower, toupper = S.upper, totitle = S.upper }) do
  ascii(name, function(c)
    return byte(change(c))
  end)
end

box.modules.runes = runes
