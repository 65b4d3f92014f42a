// One flow of ns-3's TCP CUBIC over a dumbbell, for benchmarks/peers.py:
//     ns3_tcp RATE_MBPS RTT_MS QUEUE_PACKETS DURATION_S
// prints the bytes that the receiving application got.

#include <cstdlib>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

int main(int argc, char** argv) {
    if (argc != 5) {
        std::cerr << "usage: ns3_tcp RATE_MBPS RTT_MS QUEUE_PACKETS DURATION_S\n";
        return 2;
    }
    const std::string rate = std::string(argv[1]) + "Mbps", queue = std::string(argv[3]) + "p";
    const double rtt_ms = std::atof(argv[2]), duration_s = std::atof(argv[4]);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 27));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 27));

    NodeContainer nodes;  // sender, router, receiver
    nodes.Create(3);
    InternetStackHelper().Install(nodes);
    PointToPointHelper access, bottleneck;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", TimeValue(MicroSeconds(0)));
    bottleneck.SetDeviceAttribute("DataRate", StringValue(rate));
    bottleneck.SetChannelAttribute("Delay", TimeValue(MicroSeconds(rtt_ms * 500)));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    NetDeviceContainer left = access.Install(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer right = bottleneck.Install(nodes.Get(1), nodes.Get(2));
    Ipv4AddressHelper addresses("10.1.0.0", "255.255.255.0");
    addresses.Assign(left);
    addresses.NewNetwork();
    Ipv4InterfaceContainer ends = addresses.Assign(right);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    TrafficControlHelper().Uninstall(right);  // the device's queue alone

    const InetSocketAddress there(ends.GetAddress(1), 4001);
    ApplicationContainer sink = PacketSinkHelper("ns3::TcpSocketFactory", there).Install(nodes.Get(2));
    ApplicationContainer source = BulkSendHelper("ns3::TcpSocketFactory", there).Install(nodes.Get(0));
    source.Stop(Seconds(duration_s));
    Simulator::Stop(Seconds(duration_s));
    Simulator::Run();
    std::cout << DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx() << "\n";
    Simulator::Destroy();
    return 0;
}
