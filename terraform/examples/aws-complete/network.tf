# Stands for the network that your private API servers are in, and has its way to AWS' services:
# a NAT gateway, or the endpoints that the module's README lists.
resource "aws_vpc" "this" {
  cidr_block           = "10.20.0.0/16"
  enable_dns_hostnames = true
  tags                 = { Name = "bellhop-production" }
}

data "aws_availability_zones" "here" {
  state = "available"
}

resource "aws_subnet" "private" {
  count = 2

  vpc_id            = aws_vpc.this.id
  cidr_block        = cidrsubnet(aws_vpc.this.cidr_block, 8, count.index)
  availability_zone = data.aws_availability_zones.here.names[count.index]
  tags              = { Name = "bellhop-production-${count.index}" }
}

resource "aws_security_group" "functions" {
  name        = "bellhop-production"
  description = "Functions of Bellhop, they call and nobody calls them"
  vpc_id      = aws_vpc.this.id

  egress {
    description = "API servers, and the services of AWS"
    from_port   = 443
    to_port     = 443
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
}
